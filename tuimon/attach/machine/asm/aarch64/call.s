// One C call on a borrowed thread, on a private stack, then back to where it was.
//
// Entered by a register write that changes pc and sp. sp is the address of a frame for rt_sigreturn, which holds all
// registers, the vector state and the signal mask of the thread; the stack grows from there, so that sp is the frame's address
// again when the call has come back, and a signal never finds sp above it.
.globl _start
_start:
    mov x29, #0
    mov x30, #0
    ldr x0, argument
    ldr x9, function
    blr x9
    ldr x9, result
    str x0, [x9]
    mov x8, #139                // rt_sigreturn
    svc #0
    brk #0
.balign 8
argument: .quad 0
function: .quad 0
result: .quad 0
