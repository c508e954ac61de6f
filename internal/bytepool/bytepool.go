// Package bytepool keeps byte slices for reuse. Get returns one, Put gives it back.
package bytepool

import "sync"

// maxKept is the largest capacity that is kept, in bytes. Larger slices would add to the memory of a process under
// load.
const maxKept = 256 << 10

var pool = sync.Pool{New: func() any { return new([]byte) }}

// Get returns an empty slice. What is appended to it is stored through the pointer before Put.
func Get() *[]byte { return pool.Get().(*[]byte) }

// Put gives a slice back. Nothing may refer to its array any more.
func Put(b *[]byte) {
	if cap(*b) <= maxKept {
		*b = (*b)[:0]
		pool.Put(b)
	}
}
