// One or two system calls on a borrowed thread, then back to where it was.
//
// Entered by a register write that changes pc (and sp, where the frame lies on the thread's own stack). The way back is
// rt_sigreturn on a frame that the tracer wrote: all registers, the vector state, the signal mask. A jump could not do it,
// for it needs a register.
//
// The frame may lie in a page that the thread cannot write. No signal may come while sp points there, or the kernel could not
// put its own frame below and would kill the process. So all signals are blocked first; the frame holds the thread's own mask.
//
// The second call is made only if the first one gave exactly the value that the tracer asked for: the address of a fixed
// mapping. Otherwise the second one would change the protection of somebody else's memory.
.globl _start
_start:
    ldr x8, first_nr
    ldr x0, first_1
    ldr x1, first_2
    ldr x2, first_3
    ldr x3, first_4
    ldr x4, first_5
    ldr x5, first_6
    svc #0
    ldr x9, expected
    cmp x0, x9
    b.ne back
    ldr x8, second_nr
    ldr x0, second_1
    ldr x1, second_2
    ldr x2, second_3
    svc #0
back:
    mov x8, #135                // rt_sigprocmask
    mov x0, #2                  // SIG_SETMASK
    adr x1, all_signals
    mov x2, #0
    mov x3, #8
    svc #0
    ldr x9, frame
    mov sp, x9
    mov x8, #139                // rt_sigreturn
    svc #0
    brk #0
.balign 8
first_nr: .quad 0
first_1: .quad 0
first_2: .quad 0
first_3: .quad 0
first_4: .quad 0
first_5: .quad 0
first_6: .quad 0
expected: .quad 0
second_nr: .quad 0
second_1: .quad 0
second_2: .quad 0
second_3: .quad 0
all_signals: .quad 0
frame: .quad 0
