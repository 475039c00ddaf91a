// uint64_t vectors(uint64_t rounds, void *kept, void *now): fills every SVE register, keeps a copy at `kept`, then compares the
// registers with it so many times, without a system call: they stay live. Gives the number of rounds that found a difference.
// Each buffer has room for 32 vectors and 16 predicates; the last predicate is a copy of the first-fault register.
.arch armv8-a+sve
.globl vectors
vectors:
    hint #34                    // bti c
    mov x14, x30
    mov x15, x1
    ptrue p0.b
.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    mov w9, #(7 * \n + 3)
    index z\n\().b, w9, #5
.endr
    mov x9, #11
    whilelo p7.b, xzr, x9
    setffr
    wrffr p7.b
.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14
    mov x9, #(13 * \n + 1)
    whilelo p\n\().b, xzr, x9
.endr
    mov x10, x1
    bl store
    rdvl x11, #1                // 32 vectors and 16 predicates, in bytes
    lsl x12, x11, #5
    add x12, x12, x11, lsl #1
    mov x13, #0                 // differences
1:  mov x10, x2
    bl store
    mov x9, #0
2:  ldr x3, [x15, x9]
    ldr x4, [x2, x9]
    cmp x3, x4
    b.ne 3f
    add x9, x9, #8
    cmp x9, x12
    b.lo 2b
    b 4f
3:  add x13, x13, #1
4:  subs x0, x0, #1
    b.ne 1b
    mov x0, x13
    ret x14

store:
    mov x16, x30
.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    str z\n, [x10, #\n, mul vl]
.endr
    rdffr p15.b
    addvl x17, x10, #16
    addvl x17, x17, #16
.irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    str p\n, [x17, #\n, mul vl]
.endr
    br x16
