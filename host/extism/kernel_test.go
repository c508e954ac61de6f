package extism

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hako-run/hako/host/broker"
)

var errFull = errors.New("full")

func newKernel(limit int64) *kernel {
	k := &kernel{limit: limit, limitErr: errFull}
	k.reset()
	return k
}

// trap runs do and returns the error with which it panics.
func trap(do func()) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = cause.(error)
		}
	}()
	do()
	return nil
}

func TestKernel(t *testing.T) {
	t.Parallel()
	k := newKernel(1 << 20)
	if k.alloc(0) != 0 || k.write(nil) != 0 || k.length(0) != 0 || k.bytes("f", 0) != nil {
		t.Error("nothing has the offset zero")
	}
	a, b := k.write([]byte("0123456789")), k.alloc(3)
	if string(k.bytes("f", a)) != "0123456789" || k.length(a) != 10 || k.length(b) != 3 || k.length(a+1) != 0 {
		t.Error("blocks are not as they were made")
	}
	if got := k.load("f", a+8, 8); got != '8'|'9'<<8 {
		t.Errorf("the end of a block reads %x", got)
	}
	if got := k.load("f", a+15, 8); got != 0 {
		t.Errorf("the padding reads %x", got)
	}
	k.store("f", b, 0x0102030405060708, 8)
	if got := k.load("f", b+1, 1); got != 7 {
		t.Errorf("byte 1 is %d", got)
	}
	k.output = k.view("f", span{a + 2, 3})
	k.free(a)
	if string(k.output.data) != "234" {
		t.Error("what was given as output goes with its block")
	}
	if k.length(a) != 0 {
		t.Error("a block is there after it was freed")
	}
	for name, do := range map[string]func(){
		"before all blocks":   func() { k.load("f", firstOffset-1, 1) },
		"between blocks":      func() { k.load("f", b-1, 1) },
		"a freed block":       func() { k.load("f", a, 8) },
		"after all blocks":    func() { k.load("f", 1<<63, 8) },
		"over the end":        func() { k.store("f", b+1, 0, 8) },
		"not a block's start": func() { k.bytes("f", b+1) },
		"more than the block": func() { k.view("f", span{b, 4}) },
		"a length that wraps": func() { k.view("f", span{b + 1, 1<<64 - 1}) },
	} {
		var wrong *accessError
		if err := trap(do); !errors.As(err, &wrong) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKernelLimit(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{1 << 10, 1 << 20, 1 << 63, 1<<64 - 1} {
		k := newKernel(1000)
		if err := trap(func() { k.alloc(n) }); !errors.Is(err, errFull) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	k := newKernel(1000)
	var made int
	for trap(func() { k.alloc(1) }) == nil {
		made++
	}
	if most := 1000 / blockCost; made > most {
		t.Errorf("%d blocks of one byte fit into 1000 bytes", made)
	}
}

// FuzzKernel compares operations on a kernel with those on a map of byte slices.
func FuzzKernel(f *testing.F) {
	f.Add([]byte{0, 9, 0, 20, 2, 0, 1, 0, 0, 5, 2, 1, 3, 7, 1, 1, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, operations []byte) {
		k := newKernel(10_000)
		model := map[uint64][]byte{}
		var offsets []uint64
		for ; len(operations) >= 3; operations = operations[3:] {
			var offset uint64
			if len(offsets) > 0 {
				offset = offsets[int(operations[1])%len(offsets)]
			}
			n := uint64(operations[2])
			switch operations[0] % 4 {
			case 0:
				var made uint64
				if trap(func() { made = k.alloc(n) }) == nil && made != 0 {
					model[made] = make([]byte, n)
					offsets = append(offsets, made)
				}
			case 1:
				k.free(offset)
				delete(model, offset)
			case 2:
				address := offset + n
				err := trap(func() { k.store("f", address, n, 1) })
				inside := false
				for start, block := range model {
					if address-start < padded(uint64(len(block))) {
						inside = true
					}
					if address-start < uint64(len(block)) {
						block[address-start] = byte(n)
					}
				}
				if inside != (err == nil) {
					t.Errorf("write at %d: %v", address, err)
				}
			case 3:
				_ = trap(func() { k.output = k.view("f", span{offset + n, n}) })
			}
		}
		used := int64(0)
		for offset, want := range model {
			if got := k.bytes("f", offset); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("block %d is %v, want %v", offset, got, want)
			}
			used += cost(uint64(len(want)))
		}
		if used += int64(k.freed) * blockCost; k.used != used || k.used > k.limit {
			t.Errorf("it counts %d bytes of %d, and there are %d", k.used, k.limit, used)
		}
	})
}

// TestDecodeIsBounded checks that guests cannot make the host decode unlimited JSON.
func TestDecodeIsBounded(t *testing.T) {
	t.Parallel()
	s := &session{call: &broker.Call{}, kernel: *newKernel(1 << 20)}
	var v any
	if err := trap(func() { s.decode("f", s.kernel.write([]byte(`{"a":1}`)), &v) }); err != nil || v == nil {
		t.Errorf("%v, %v", v, err)
	}
	large := append(make([]byte, 0, maxArgument+2), '"')
	for len(large) < maxArgument {
		large = append(large, 'x')
	}
	if err := trap(func() { s.decode("f", s.kernel.write(append(large, '"')), &v) }); !errors.Is(err,
		errArgumentTooLong) {
		t.Errorf("%v", err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	s := &session{call: new(broker.Call), vars: map[string][]byte{}}
	half := make([]byte, maxVars/2)
	s.setVar("a", half)
	s.setVar("a", half) // replaces the first
	if err := trap(func() { s.setVar("b", half) }); err == nil {
		t.Error("the variables hold more than they may")
	}
	s.setVar("a", nil)
	if _, ok := s.vars["a"]; ok || s.vars["b"] != nil {
		t.Errorf("%d variables are left", len(s.vars))
	}
}
