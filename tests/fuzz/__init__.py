"""Whatever bytes, values, words and files others may give tuimon: tried by a fuzzer that is guided by coverage.

`python -m tests.fuzz` runs the targets, for minutes each; `test_found` tries each with a few inputs, the same in every run, and
with all that was ever found (`found/`: one file an input, named for its target and what was the matter).
"""
