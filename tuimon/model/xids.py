"""What the errors mean that the NVIDIA driver reports by number ("XID"), in a few words.

These are the numbers of NVIDIA's public list that a training job meets, in our own words.
"""

from __future__ import annotations

_XIDS = {
    13: "a kernel did something that the GPU does not allow, most often an access outside its memory",
    31: "an access to memory that is not mapped, most often an illegal address in a kernel",
    32: "a broken command buffer: the driver, the bus or the memory",
    38: "the driver's firmware has failed",
    43: "a program's work was stopped after an error of its own; the GPU is well",
    45: "a program's work was cleared away, as after an abort or another error",
    48: "memory error of two bits, which ECC cannot correct",
    61: "the GPU's microcontroller has stopped at a fault",
    62: "the GPU's microcontroller has halted",
    63: "a bad row of the memory is marked to be replaced at the next reset",
    64: "a bad row of the memory could not be marked to be replaced",
    69: "a command that the GPU's engine does not know",
    74: "an error on NVLink",
    79: "the GPU has fallen off the bus: power, heat or the slot",
    92: "many memory errors that ECC has corrected",
    94: "memory error that ECC could not correct; only the program that met it is hurt",
    95: "memory error that ECC could not correct, and that may have hurt other programs: reset the GPU",
    109: "a switch between programs has timed out",
    119: "the GPU's system processor does not answer the driver",
    120: "the GPU's system processor has failed",
    121: "a corrected error on the link to the processor (C2C)",
    140: "memory error that ECC could not correct, without its address",
    143: "the GPU could not be started",
    149: "an error on NVLink",
    154: "what the GPU needs to recover has changed: see the kernel's log",
}


def xid_words(number: int) -> str:
    """What an XID error says; for one that is not known here, where to look."""
    return _XIDS.get(number, "see NVIDIA's list of XID errors")
