"""The injector on machines that are not this one, in emulation: `python -m tests.vm.run`."""
