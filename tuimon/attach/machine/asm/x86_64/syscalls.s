# One or two system calls on a borrowed thread, then back to where it was.
#
# Entered by a register write that changes only rip, so every other register still holds what the thread had. No stack is
# used and no flag is changed (lea and jrcxz touch none, `syscall` brings rflags back), so at the end only the registers
# that a system call uses have to be put back, from literals that the tracer wrote behind the code.
#
# The second call is made only if the first one gave exactly the value that the tracer asked for: the address of a fixed
# mapping. Otherwise the second one would change the protection of somebody else's memory.
.intel_syntax noprefix
.globl _start
_start:
    mov rax, [rip+first_nr]
    mov rdi, [rip+first_1]
    mov rsi, [rip+first_2]
    mov rdx, [rip+first_3]
    mov r10, [rip+first_4]
    mov r8, [rip+first_5]
    mov r9, [rip+first_6]
    syscall
    mov rcx, [rip+minus_expected]
    lea rcx, [rax+rcx]
    jrcxz second
    jmp back
second:
    mov rax, [rip+second_nr]
    mov rdi, [rip+second_1]
    mov rsi, [rip+second_2]
    mov rdx, [rip+second_3]
    syscall
back:
    mov rax, [rip+own_rax]
    mov rdi, [rip+own_rdi]
    mov rsi, [rip+own_rsi]
    mov rdx, [rip+own_rdx]
    mov r10, [rip+own_r10]
    mov r8, [rip+own_r8]
    mov r9, [rip+own_r9]
    mov rcx, [rip+own_rcx]
    mov r11, [rip+own_r11]
    jmp [rip+own_rip]
.balign 8
first_nr: .quad 0
first_1: .quad 0
first_2: .quad 0
first_3: .quad 0
first_4: .quad 0
first_5: .quad 0
first_6: .quad 0
minus_expected: .quad 0
second_nr: .quad 0
second_1: .quad 0
second_2: .quad 0
second_3: .quad 0
own_rax: .quad 0
own_rdi: .quad 0
own_rsi: .quad 0
own_rdx: .quad 0
own_r10: .quad 0
own_r8: .quad 0
own_r9: .quad 0
own_rcx: .quad 0
own_r11: .quad 0
own_rip: .quad 0
