package wasi

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"

	"github.com/hako-run/hako/host/broker"
)

// maxRandom bounds the random bytes of one call. WASI does not let the host return fewer than requested.
const maxRandom = 1 << 20

// random is wasi:random. All numbers are from the system's random source.
func (h *host) random() []broker.Interface {
	bytes := func1(func(c caller, n uint64) any {
		h.RandomDrawn(c.ctx)
		return randomBytes(c, n)
	})
	number := func0(func(c caller) any {
		h.RandomDrawn(c.ctx)
		return randomNumber(c)
	})
	return []broker.Interface{
		wasi("random/random", functions{"get-random-bytes": bytes, "get-random-u64": number}),
		wasi("random/insecure", functions{"get-insecure-random-bytes": bytes, "get-insecure-random-u64": number}),
		// The seed is for hash tables. Instances may share it, so that drawing it does not keep one from being copied.
		wasi("random/insecure-seed", functions{"insecure-seed": func0(func(c caller) any {
			return []any{randomNumber(c), randomNumber(c)}
		})}),
	}
}

// randomBytes returns n random bytes. The price is charged before they are generated, in parts of at most 64 KiB, which
// take a fraction of a millisecond.
func randomBytes(c caller, n uint64) []byte {
	if n > maxRandom {
		panic(fmt.Errorf("it draws %d random bytes at once: at most %d are possible", n, maxRandom))
	}
	all := make([]byte, n)
	for rest := all; len(rest) > 0; {
		part := rest[:min(len(rest), 64<<10)]
		c.Charge(int64(len(part)) * broker.RandomSteps)
		_, _ = rand.Read(part) // it never fails
		rest = rest[len(part):]
	}
	return all
}

func randomNumber(c caller) uint64 { return binary.LittleEndian.Uint64(randomBytes(c, 8)) }
