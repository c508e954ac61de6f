#include "textflag.h"

// func replaceClock()
TEXT ·replaceClock(SB), NOSPLIT, $0-0
	MOVQ runtime·vdsoClockgettimeSym(SB), AX
	MOVQ AX, ·machineClock(SB)
	LEAQ ·clock(SB), AX
	MOVQ AX, runtime·vdsoClockgettimeSym(SB)
	RET

// int clock(clockid_t id, struct timespec *t), in C's calling convention: the machine's clock_gettime, and to CLOCK_REALTIME, which is 0, the
// seconds at *ahead are added.
TEXT ·clock(SB), NOSPLIT|NOFRAME, $0-0
	PUSHQ DI
	PUSHQ SI
	SUBQ  $8, SP
	MOVQ  ·machineClock(SB), AX
	CALL  AX
	ADDQ  $8, SP
	POPQ  SI
	POPQ  DI
	CMPL  DI, $0
	JNE   done
	MOVQ  ·ahead(SB), CX
	MOVQ  (CX), CX
	ADDQ  CX, (SI)
done:
	RET
