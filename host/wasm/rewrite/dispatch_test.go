package rewrite_test

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/hako-run/hako/host/wasm/rewrite"
)

// Locals of the functions here, whose parameter is the first.
const (
	result = iota // a digest of the parts executed
	part          // the number of the next part
	left          // the number of jumps left
	other         // not used by the switch
)

// switched generates functions in the form of the Go compiler, and similar ones, from a list of choices: a loop around
// a switch over parts, with jumps between parts.
type switched struct {
	choices []byte
	code    []byte
	// depth counts the open blocks, loop those around the loop.
	depth, loop, parts int
}

// choose returns a number below n; it is zero when no choices are left.
func (s *switched) choose(n int) int {
	if len(s.choices) == 0 {
		return 0
	}
	choice := s.choices[0]
	s.choices = s.choices[1:]
	return int(choice) % n
}

func (s *switched) emit(code ...byte) { s.code = append(s.code, code...) }

func (s *switched) block(op byte) {
	s.emit(op, 0x40)
	s.depth++
}

func (s *switched) end() {
	s.emit(0x0b)
	s.depth--
}

// module returns a module with such a function, exported as "f".
func (s *switched) module() []byte {
	s.emit(0x41, 40, 0x21, left)
	s.loop, s.parts = s.choose(3), 1+s.choose(6)
	for range s.loop {
		s.block(0x02)
	}
	s.block(0x03)
	for range s.parts {
		s.block(0x02)
	}
	s.emit(0x20, part, 0x0e, byte(s.parts))
	for n := range s.parts {
		s.emit(s.target(n))
	}
	s.emit(s.target(0)) // default
	for n := range s.parts {
		s.end()
		s.emit(0x20, result, 0x41, 31, 0x6c, 0x41, byte(n), 0x6a, 0x21, result) // result = 31*result + n
		for range s.choose(4) {
			s.statement(3)
		}
	}
	for s.depth > 0 {
		s.end()
	}
	s.emit(0x20, result)
	function := append([]byte{1, 3, 0x7f}, append(s.code, 0x0b)...)
	body := binary.AppendUvarint([]byte{1}, uint64(len(function)))
	body = append(body, function...)
	out := module([]byte{1, 1, 0x60, 1, 0x7f, 1, 0x7f}, []byte{3, 1, 0}, []byte{7, 1, 1, 'f', 0, 0})
	out = binary.AppendUvarint(append(out, 10), uint64(len(body)))
	return append(out, body...)
}

// target is mostly n, sometimes another open block, but never the loop, which would not end.
func (s *switched) target(n int) byte {
	if s.choose(4) == 3 {
		n = s.choose(s.depth)
	}
	if n == s.parts {
		n = 0
	}
	return byte(n)
}

// statement adds a jump, or blocks with statements. Each jump decrements left, and the last one returns, so the
// function ends.
func (s *switched) statement(nesting int) {
	switch choice := s.choose(6); {
	case choice < 3 || nesting == 0:
		s.jump()
	case choice == 3: // tests a bit of result
		s.emit(0x20, result, 0x41, byte(1<<s.choose(6)), 0x71)
		s.block(0x04)
		s.statement(nesting - 1)
		s.end()
	default:
		s.block([]byte{0x02, 0x03}[choice-4])
		for range s.choose(3) {
			s.statement(nesting - 1)
		}
		s.end()
	}
}

func (s *switched) jump() {
	// If left--; left == 0 { return result }.
	s.emit(0x20, left, 0x41, 1, 0x6b, 0x22, left, 0x45, 0x04, 0x40, 0x20, result, 0x0f, 0x0b)
	local, depth := byte(part), s.depth-1-s.loop
	switch s.choose(8) {
	case 6:
		local = other
	case 7:
		depth = s.choose(s.depth)
	}
	s.emit(0x41, byte(s.choose(s.parts+2)), 0x21, local)
	if s.choose(8) == 7 {
		s.emit(0x41, 0x7f, 0x21, part) // overwrites the number set before
	}
	s.emit(0x0c, byte(depth))
}

// FuzzDispatch checks that rewriting does not change the result of a function with a switch and jumps.
func FuzzDispatch(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		choices := make([]byte, 120)
		for i := range choices {
			choices[i] = byte(random.Uint32())
		}
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 400 {
			return
		}
		original := (&switched{choices: choices}).module()
		rewritten, err := rewrite.Module(original, 1000, rewrite.MaxElements)
		if err != nil {
			t.Fatal(err)
		}
		plain, metered := instantiate(t, original).ExportedFunction("f"), instantiate(t,
			rewritten.Wasm).ExportedFunction("f")
		for n := range uint64(4) {
			want, wantErr := plain.Call(t.Context(), n)
			got, err := metered.Call(t.Context(), n)
			if err != nil || wantErr != nil || got[0] != want[0] {
				t.Errorf("f(%d) = %d, %v, want %d, %v\n%x", n, got, err, want, wantErr, original)
			}
		}
	})
}
