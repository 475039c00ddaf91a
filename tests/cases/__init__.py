"""Programs whose breaks, crossings and recompiles are known, against what tuimon says of them.

    TUIMON_CASES=FOLDER python -m tests.cases [--attach | --neutral] [--python PATH] [--jobs N] [ID ...]

FOLDER holds pairs NN_name.py and NN_name.json; the JSON is the truth. The programs take their number of steps, a pause between
two of them and one before the first from STEPS, PACE and WAIT. Three things are looked at (all cases, or those named):

- without an option, each program runs under `tuimon run` and its report has to say what the JSON says: `make cases`;
- `--attach`: tuimon attaches in the middle of the run. What happened before has to be in the report, marked so; what was
  counted has to be what is left: `make cases-attach`;
- `--neutral`: each program runs without tuimon, with two attaches and detaches, and under `tuimon run`. What Dynamo counted and
  every tensor have to be the same, to the bit: `make cases-neutral`.

`compare` holds the rules, `jobs` starts things, `within` is what runs inside the program's process, `neutral` the third way.
"""
