// Package memorytest finds memory that outlives its use: a Tracker watches texts and bytes with weak pointers, and
// reports those that are still reachable when a test expects them to be free.
package memorytest

import (
	"runtime"
	"testing"
	"unsafe"
	"weak"
)

// rounds bounds the garbage collections of Check. Two free what has no other owner, because a sync.Pool keeps what it
// has for one; each further one gives goroutines that are about to end the time to do so.
const rounds = 200

// Tracker watches memory, by a name for it. The zero value is ready. It belongs to one goroutine.
type Tracker struct {
	names    []string
	pointers []weak.Pointer[byte]
}

// Text watches the memory of which text is a part, and returns text. It must not be a constant or empty.
func (k *Tracker) Text(name, text string) string {
	k.add(name, unsafe.StringData(text))
	return text
}

// Bytes watches the memory of which data is a part, and returns data. It must not be empty.
func (k *Tracker) Bytes(name string, data []byte) []byte {
	k.add(name, unsafe.SliceData(data))
	return data
}

func (k *Tracker) add(name string, start *byte) {
	k.names, k.pointers = append(k.names, name), append(k.pointers, weak.Make(start))
}

// Check reports an error for each watched memory that is not freed by garbage collections. Values that may keep it have
// to stay reachable until Check returns: see runtime.KeepAlive.
func (k *Tracker) Check(t testing.TB) {
	t.Helper()
	for range rounds {
		runtime.GC()
		if len(k.kept()) == 0 {
			return
		}
		runtime.Gosched()
	}
	for _, name := range k.kept() {
		t.Errorf("%s is still in memory", name)
	}
}

func (k *Tracker) kept() (names []string) {
	for i, pointer := range k.pointers {
		if pointer.Value() != nil {
			names = append(names, k.names[i])
		}
	}
	return names
}
