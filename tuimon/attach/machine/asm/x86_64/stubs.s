# The four routines that the target runs for us. Each takes the address of the header in rdi.
#
#   enter_pending   on the main thread at any point: ask CPython to call `pending` when that thread is next in its loop
#   enter_thread    on a thread asleep in a safe system call: claim the header, start `with_ensure`
#   pending         on the main thread WITH the GIL: claim the header, make a thread state, start `with_state`
#   with_state      on our own new thread: take the GIL with that thread state, run the script
#   with_ensure     on our own new thread: take the GIL through PyGILState_Ensure, run the script
#
# Header: u32 state, u32 cancel, i32 rc, u32 pid, i64 result of enter_*, u64 thread state, u32 queued, u32 ran,
# u32 tid (of our thread), u32 ran_by (the thread that ran `pending`); both as the target's own pid namespace numbers them.
# States: 0 nothing has begun, 1 claimed, 2 the thread has the GIL, 3 finished, 4 no thread could be made, 5 cancelled.
#
# `state` is claimed by compare-and-swap, so of all the entries that were ever queued exactly one starts the script. `ran` and
# state 3 are written last: what is left to execute in this page then are a few instructions without a call.
.intel_syntax noprefix
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

enter_pending:
    endbr64
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    mov rbx, rdi
    call alive
    test rax, rax
    jnz 1f
    # counted before the call: where CPython's main thread is another one, `pending` can run before the call is back
    lock inc dword ptr [rbx+QUEUED]
    mov rsi, rbx
    lea rdi, [rip+pending]
    call [rip+Py_AddPendingCall]
    movsxd rax, eax
    test eax, eax
    jz 1f
    lock dec dword ptr [rbx+QUEUED]
1:  pop r12
    pop rbx
    pop rbp
    ret

.balign 16
enter_thread:
    endbr64
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    mov rbx, rdi
    call alive
    test rax, rax
    jnz 2f
    xor eax, eax
    mov ecx, 1
    lock cmpxchg dword ptr [rbx+STATE], ecx
    mov eax, 1
    jne 2f
    mov rsi, rbx
    lea rdi, [rip+with_ensure]
    call [rip+PyThread_start_new_thread]
    cmp rax, -1
    je 1f
    xor eax, eax
    jmp 2f
1:  mov dword ptr [rbx+STATE], 4
2:  pop r12
    pop rbx
    pop rbp
    ret

# rax = 0: the interpreter is up; -2: not yet; -3: it is on its way down
.balign 16
alive:
    push rbp
    mov rbp, rsp
    call [rip+Py_IsInitialized]
    test eax, eax
    mov rax, -2
    jz 1f
    mov rax, [rip+Py_IsFinalizing]
    test rax, rax
    jz 1f
    call rax
    neg eax
    sbb rax, rax
    and rax, -3
1:  pop rbp
    ret

.balign 16
pending:
    endbr64
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    mov rbx, rdi
    # a child that was forked with the call still queued has a copy of all this: it must do nothing
    mov eax, 39
    syscall
    cmp eax, dword ptr [rbx+PID]
    jne 4f
    xor eax, eax
    mov ecx, 1
    cmp dword ptr [rbx+CANCEL], 0
    je 1f
    mov ecx, 5
1:  lock cmpxchg dword ptr [rbx+STATE], ecx
    jne 4f
    cmp ecx, 5
    je 4f
    # the state is made here, under the GIL, because nobody can fork now; PyGILState_Ensure would make it without the GIL
    call [rip+PyInterpreterState_Main]
    mov rdi, rax
    call [rip+PyThreadState_New]
    test rax, rax
    jz 3f
    mov [rbx+THREAD_STATE], rax
    mov r12, rax
    mov rsi, rbx
    lea rdi, [rip+with_state]
    call [rip+PyThread_start_new_thread]
    cmp rax, -1
    jne 4f
    mov rdi, r12
    call [rip+PyThreadState_Clear]
    mov rdi, r12
    call [rip+PyThreadState_Delete]
3:  mov dword ptr [rbx+STATE], 4
4:  mov eax, 186
    syscall
    mov dword ptr [rbx+RAN_BY], eax
    lock inc dword ptr [rbx+RAN]
    xor eax, eax
    pop r12
    pop rbx
    pop rbp
    ret

.balign 16
with_state:
    endbr64
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    mov rbx, rdi
    mov eax, 186
    syscall
    mov dword ptr [rbx+TID], eax
    mov r12, [rbx+THREAD_STATE]
    # 3.10 and 3.11: tell the thread-specific storage of this thread whose state it has, as CPython's own threads do; without
    # it the debugging allocators abort. From 3.12 on taking the GIL does so.
    mov rax, [rip+note_state]
    test rax, rax
    jz 1f
    mov rdi, r12
    call rax
1:  mov rdi, r12
    call [rip+PyEval_AcquireThread]
    call run
    mov rdi, r12
    call [rip+PyThreadState_Clear]
    call [rip+PyThreadState_DeleteCurrent]
    mov dword ptr [rbx+STATE], 3
    pop r12
    pop rbx
    pop rbp
    ret

.balign 16
with_ensure:
    endbr64
    push rbp
    mov rbp, rsp
    push rbx
    push r12
    mov rbx, rdi
    mov eax, 186
    syscall
    mov dword ptr [rbx+TID], eax
    call [rip+PyGILState_Ensure]
    mov r12d, eax
    call run
    mov edi, r12d
    call [rip+PyGILState_Release]
    mov dword ptr [rbx+STATE], 3
    pop r12
    pop rbx
    pop rbp
    ret

# with the GIL; rbx = header: run the script in a fresh namespace, leave no exception behind; rc 0 done, 1 raised, 2 cancelled
.balign 16
run:
    push rbp
    mov rbp, rsp
    push r12
    push r13
    mov dword ptr [rbx+STATE], 2
    mov dword ptr [rbx+RC], 2
    cmp dword ptr [rbx+CANCEL], 0
    jne 3f
    mov dword ptr [rbx+RC], 1
    call [rip+PyDict_New]
    test rax, rax
    jz 2f
    mov r12, rax
    lea rdi, [rbx+SCRIPT]
    mov esi, 257
    mov rdx, r12
    mov rcx, r12
    call [rip+PyRun_String]
    mov r13, rax
    test rax, rax
    jz 1f
    mov rdi, r13
    call [rip+Py_DecRef]
    mov dword ptr [rbx+RC], 0
1:  mov rdi, r12
    call [rip+Py_DecRef]
    test r13, r13
    jnz 3f
2:  call [rip+PyErr_Clear]
3:  pop r13
    pop r12
    pop rbp
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
