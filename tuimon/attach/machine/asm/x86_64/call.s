# One C call on a borrowed thread, on a private stack, then back to where it was.
#
# Entered by a register write that changes rip and rsp (the top of the private stack, 16-byte aligned). The vector and
# floating-point state is saved in full before the call and put back after it: without that the thread's numbers come out
# wrong. call and ret are balanced, so a shadow stack stays right too.
.intel_syntax noprefix
.globl _start
_start:
    mov rbx, [rip+vector_area]
    mov eax, -1
    mov edx, -1
    xsave [rbx]
    cld
    xor ebp, ebp
    mov rdi, [rip+argument]
    call [rip+function]
    mov rcx, [rip+result]
    mov [rcx], rax
    mov rbx, [rip+vector_area]
    mov eax, -1
    mov edx, -1
    xrstor [rbx]
    push qword ptr [rip+own_eflags]
    mov rax, [rip+own_rax]
    mov rbx, [rip+own_rbx]
    mov rcx, [rip+own_rcx]
    mov rdx, [rip+own_rdx]
    mov rsi, [rip+own_rsi]
    mov rdi, [rip+own_rdi]
    mov rbp, [rip+own_rbp]
    mov r8, [rip+own_r8]
    mov r9, [rip+own_r9]
    mov r10, [rip+own_r10]
    mov r11, [rip+own_r11]
    mov r12, [rip+own_r12]
    mov r13, [rip+own_r13]
    mov r14, [rip+own_r14]
    mov r15, [rip+own_r15]
    popfq
    mov rsp, [rip+own_rsp]
    jmp [rip+own_rip]
.balign 8
vector_area: .quad 0
argument: .quad 0
function: .quad 0
result: .quad 0
own_eflags: .quad 0
own_rax: .quad 0
own_rbx: .quad 0
own_rcx: .quad 0
own_rdx: .quad 0
own_rsi: .quad 0
own_rdi: .quad 0
own_rbp: .quad 0
own_r8: .quad 0
own_r9: .quad 0
own_r10: .quad 0
own_r11: .quad 0
own_r12: .quad 0
own_r13: .quad 0
own_r14: .quad 0
own_r15: .quad 0
own_rsp: .quad 0
own_rip: .quad 0
