/* The counts of each instruction, determined by hand.  After each: how often it is executed in a
 * turn of the loop (default once), then a letter for each time that it reads (L), writes (S) or
 * branches (B); for a repeated one, for all its iterations.  counts.py reads these letters, and has
 * the sums computed independently. */
	.globl _start
	.bss
	.balign 64
buf:	.skip 8192
	.text
leaf:	ret                          # L B
_start:	mov $1000, %ebp              # before
	lea buf(%rip), %rbx          # before
1:	mov (%rbx), %eax             # L: unused, eax is written below
	mov 8(%rbx), %eax            # L
	test %eax, 16(%rbx)          # L: its flags are unused
	addl $1, 24(%rbx)            # L S
	andl $0, 24(%rbx)            # L S: the value read doesn't matter
	lock addl $1, 32(%rbx)       # L S
	lock xaddl %eax, 40(%rbx)    # L S
	xchg %eax, 48(%rbx)          # L S
	lock cmpxchg %ecx, 56(%rbx)  # L S
	cmpxchg %ecx, 56(%rbx)       # L S
	push %rax                    # S
	pop %rcx                     # L: unused
	xor %ecx, %ecx               #
	push 64(%rbx)                # L S
	pop 72(%rbx)                 # L S
	call leaf                    # S B
	lea leaf(%rip), %rax         #
	mov %rax, 88(%rbx)           # S
	call *88(%rbx)               # L S B
	lea 128(%rbx), %rsi          #
	lea 256(%rbx), %rdi          #
	mov $16, %ecx                #
	rep movsb                    # LLLLLLLLLLLLLLLL SSSSSSSSSSSSSSSS
	rep stosq                    # rcx is 0
	mov $4, %ecx                 #
	repe cmpsb                   # LLLLLLLL: all are equal
	mov $9, %ecx                 #
	repne scasb                  # L: the first is it
	movsb                        # L S
	lodsb                        # L
	stosb                        # S
	scasb                        # L
	movdqu (%rbx), %xmm0         # L
	movups %xmm0, 64(%rbx)       # S
	paddd 16(%rbx), %xmm0        # L
	cvtsi2sdl 16(%rbx), %xmm1    # L
	fldt 512(%rbx)               # L
	fstpt 512(%rbx)              # S
	fxsave 1024(%rbx)            # S
	fxrstor 1024(%rbx)           # L
	movzbl 3(%rbx), %edx         # L: unused
	movslq 4(%rbx), %rdx         # L
	cmpb $0, 8(%rbx)             # L
	btsl $3, 80(%rbx)            # L S
	prefetcht0 (%rbx)            #
	nopw 0(%rax,%rax,1)          #
	lea 8(%rbx), %rax            #
	jmp 2f                       # B
2:	jrcxz 3f                     # B
3:	dec %ebp                     #
	jnz 1b                       # B
	mov $60, %eax                # after
	xor %edi, %edi               # after
	syscall                      # after
