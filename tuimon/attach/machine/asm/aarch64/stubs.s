// The four routines that the target runs for us. Each takes the address of the header in x0.
//
//   enter_pending   on the main thread at any point: ask CPython to call `pending` when that thread is next in its loop
//   enter_thread    on a thread asleep in a safe system call: claim the header, start `with_ensure`
//   pending         on the main thread WITH the GIL: claim the header, make a thread state, start `with_state`
//   with_state      on our own new thread: take the GIL with that thread state, run the script
//   with_ensure     on our own new thread: take the GIL through PyGILState_Ensure, run the script
//
// Header: u32 state, u32 cancel, i32 rc, u32 pid, i64 result of enter_*, u64 thread state, u32 queued, u32 ran,
// u32 tid (of our thread), u32 ran_by (the thread that ran `pending`); both as the target's own pid namespace numbers them.
// States: 0 nothing has begun, 1 claimed, 2 the thread has the GIL, 3 finished, 4 no thread could be made, 5 cancelled.
//
// `state` is claimed by compare-and-swap, so of all the entries that were ever queued exactly one starts the script. `ran` and
// state 3 are written last, with release: what is left to execute in this page then are a few instructions without a call.
// Exclusive loads and stores, not the atomics of ARMv8.1: the first machines do not have those. hint #34 is `bti c`.
.globl enter_pending, enter_thread

.set STATE, 0
.set CANCEL, 4
.set RC, 8
.set PID, 12
.set THREAD_STATE, 24
.set QUEUED, 32
.set RAN, 36
.set TID, 40
.set RAN_BY, 44
.set SCRIPT, 64

.set getpid, 172
.set gettid, 178

enter_pending:
    hint #34
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    str x19, [sp, #16]
    mov x19, x0
    bl alive
    cbnz x0, 1f
    // counted before the call: where CPython's main thread is another one, `pending` can run before the call is back
    add x9, x19, #QUEUED
    mov w10, #1
    bl add_to
    mov x1, x19
    adr x0, pending
    ldr x9, Py_AddPendingCall
    blr x9
    sxtw x0, w0
    cbz w0, 1f
    add x9, x19, #QUEUED
    mov w10, #-1
    bl add_to
1:  ldr x19, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

.balign 16
enter_thread:
    hint #34
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    str x19, [sp, #16]
    mov x19, x0
    bl alive
    cbnz x0, 2f
    mov w10, #1
    bl claim
    cbnz w0, 2f
    mov x1, x19
    adr x0, with_ensure
    ldr x9, PyThread_start_new_thread
    blr x9
    cmn x0, #1
    b.eq 1f
    mov x0, #0
    b 2f
1:  mov w9, #4
    stlr w9, [x19]
2:  ldr x19, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

// the word at x9 plus w10; leaves x0 alone
.balign 16
add_to:
    ldaxr w11, [x9]
    add w11, w11, w10
    stlxr w12, w11, [x9]
    cbnz w12, add_to
    ret

// x19 = header: state 0 becomes w10; x0 = 0 if so, 1 if it was another
.balign 16
claim:
    ldaxr w0, [x19]
    cbnz w0, 1f
    stlxr w11, w10, [x19]
    cbnz w11, claim
    ret
1:  clrex
    mov x0, #1
    ret

// x0 = 0: the interpreter is up; -2: not yet; -3: it is on its way down
.balign 16
alive:
    stp x29, x30, [sp, #-16]!
    mov x29, sp
    ldr x9, Py_IsInitialized
    blr x9
    mov w9, w0
    mov x0, #-2
    cbz w9, 1f
    mov x0, #0
    ldr x9, Py_IsFinalizing
    cbz x9, 1f
    blr x9
    mov x9, #-3
    cmp w0, #0
    csel x0, x9, xzr, ne
1:  ldp x29, x30, [sp], #16
    ret

.balign 16
pending:
    hint #34
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x19, x20, [sp, #16]
    mov x19, x0
    // a child that was forked with the call still queued has a copy of all this: it must do nothing
    mov x8, #getpid
    svc #0
    ldr w9, [x19, #PID]
    cmp w0, w9
    b.ne 4f
    add x9, x19, #CANCEL
    ldar w9, [x9]
    mov w10, #1
    mov w20, #5
    cmp w9, #0
    csel w20, w10, w20, eq
    mov w10, w20
    bl claim
    cbnz w0, 4f
    cmp w20, #5
    b.eq 4f
    // the state is made here, under the GIL, because nobody can fork now; PyGILState_Ensure would make it without the GIL
    ldr x9, PyInterpreterState_Main
    blr x9
    ldr x9, PyThreadState_New
    blr x9
    cbz x0, 3f
    mov x20, x0
    str x0, [x19, #THREAD_STATE]
    mov x1, x19
    adr x0, with_state
    ldr x9, PyThread_start_new_thread
    blr x9
    cmn x0, #1
    b.ne 4f
    mov x0, x20
    ldr x9, PyThreadState_Clear
    blr x9
    mov x0, x20
    ldr x9, PyThreadState_Delete
    blr x9
3:  mov w9, #4
    stlr w9, [x19]
4:  mov x8, #gettid
    svc #0
    str w0, [x19, #RAN_BY]
    add x9, x19, #RAN
    mov w10, #1
    bl add_to
    mov x0, #0
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

.balign 16
with_state:
    hint #34
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x19, x20, [sp, #16]
    mov x19, x0
    mov x8, #gettid
    svc #0
    str w0, [x19, #TID]
    ldr x20, [x19, #THREAD_STATE]
    // 3.10 and 3.11: tell the thread-specific storage of this thread whose state it has, as CPython's own threads do; without
    // it the debugging allocators abort. From 3.12 on taking the GIL does so.
    ldr x9, note_state
    cbz x9, 1f
    mov x0, x20
    blr x9
1:  mov x0, x20
    ldr x9, PyEval_AcquireThread
    blr x9
    bl run
    mov x0, x20
    ldr x9, PyThreadState_Clear
    blr x9
    ldr x9, PyThreadState_DeleteCurrent
    blr x9
    mov w9, #3
    stlr w9, [x19]
    mov x0, #0
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

.balign 16
with_ensure:
    hint #34
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x19, x20, [sp, #16]
    mov x19, x0
    mov x8, #gettid
    svc #0
    str w0, [x19, #TID]
    ldr x9, PyGILState_Ensure
    blr x9
    mov w20, w0
    bl run
    mov w0, w20
    ldr x9, PyGILState_Release
    blr x9
    mov w9, #3
    stlr w9, [x19]
    mov x0, #0
    ldp x19, x20, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

// with the GIL; x19 = header: run the script in a fresh namespace, leave no exception behind; rc 0 done, 1 raised, 2 cancelled
.balign 16
run:
    stp x29, x30, [sp, #-32]!
    mov x29, sp
    stp x21, x22, [sp, #16]
    mov w9, #2
    stlr w9, [x19]
    str w9, [x19, #RC]
    add x9, x19, #CANCEL
    ldar w9, [x9]
    cbnz w9, 3f
    mov w9, #1
    str w9, [x19, #RC]
    ldr x9, PyDict_New
    blr x9
    cbz x0, 2f
    mov x21, x0
    add x0, x19, #SCRIPT
    mov w1, #257
    mov x2, x21
    mov x3, x21
    ldr x9, PyRun_String
    blr x9
    mov x22, x0
    cbz x0, 1f
    ldr x9, Py_DecRef
    blr x9
    str wzr, [x19, #RC]
1:  mov x0, x21
    ldr x9, Py_DecRef
    blr x9
    cbnz x22, 3f
2:  ldr x9, PyErr_Clear
    blr x9
3:  ldp x21, x22, [sp, #16]
    ldp x29, x30, [sp], #32
    ret

.balign 16
Py_IsInitialized: .quad 0
Py_IsFinalizing: .quad 0
Py_AddPendingCall: .quad 0
PyThread_start_new_thread: .quad 0
PyInterpreterState_Main: .quad 0
PyThreadState_New: .quad 0
PyThreadState_Clear: .quad 0
PyThreadState_Delete: .quad 0
PyThreadState_DeleteCurrent: .quad 0
note_state: .quad 0
PyEval_AcquireThread: .quad 0
PyGILState_Ensure: .quad 0
PyGILState_Release: .quad 0
PyDict_New: .quad 0
PyRun_String: .quad 0
Py_DecRef: .quad 0
PyErr_Clear: .quad 0
