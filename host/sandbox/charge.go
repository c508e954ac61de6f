package sandbox

import (
	"context"
	"encoding/base64"
	"runtime"
	"sync/atomic"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/internal/jsonstring"
	"github.com/hako-run/hako/pdk/abi"
)

// The host's own memory for a call is charged to the memory budget: the request, the copies made while a response
// is decoded, and the response until it has been delivered. Each is charged before it is allocated.

// freeReservation is the memory in bytes that the host may hold for a call without a charge. Most calls stay below.
const freeReservation = 64 << 10

// reserve charges n bytes of host memory until the call has ended. It waits for them like a guest's memory and fails
// like budget.reserveWithin.
func (c *call) reserve(n int64) error {
	c.unreserved += n
	if c.unreserved < freeReservation {
		return nil
	}
	if err := c.plugin.engine.budget.reserveWithin(c.ctx, c.Plugin, c.unreserved, c.memoryWait); err != nil {
		return err
	}
	c.reserved, c.unreserved = c.reserved+c.unreserved, 0
	return nil
}

// reserveValues is reserve for values that a component passes. They may take as much at once as the memory limit gives
// the component: parts of a value may point at the same memory, and a list whose elements do would take gigabytes.
func (c *call) reserveValues(n int64) error {
	if n > c.limits.Memory-c.values {
		return c.limitError(limit.Memory, limit.Bytes(c.limits.Memory),
			"what it passes at once would take more than that in the host: pass less, or raise limits.memory")
	}
	if err := c.reserve(n); err != nil {
		return err
	}
	c.values += n
	return nil
}

// releaseValues ends the charge for values that the host has dropped.
func (c *call) releaseValues(n int64) {
	c.values -= n
	if c.unreserved -= n; c.unreserved > -freeReservation {
		return
	}
	more := min(-c.unreserved, c.reserved)
	c.plugin.engine.budget.release(more)
	c.reserved, c.unreserved = c.reserved-more, c.unreserved+more
}

// mustReserve is reserve for host functions: it traps the guest instead of returning an error.
func (c *call) mustReserve(n int64) {
	if err := c.reserve(n); err != nil {
		panic(err)
	}
}

// releaseReserved ends the charge for host memory of the call.
func (c *call) releaseReserved() {
	if c.reserved > 0 {
		c.plugin.engine.budget.release(c.reserved)
		c.reserved = 0
	}
}

// chargeDelivery replaces the charge for the call by a charge for its undelivered response. That charge ends with ctx,
// which a frontend cancels after delivery, or else when the response is garbage-collected.
func (c *call) chargeDelivery(ctx context.Context, response *abi.Response) error {
	weight := deliveryBytes(response, c.source, len(c.blobs) == 0)
	if weight < freeReservation {
		return nil
	}
	if more := weight - c.reserved - c.unreserved; more > 0 {
		c.ctx = ctx // the call's deadline has no effect on delivery
		if err := c.reserve(more); err != nil {
			return err
		}
	}
	if c.reserved == 0 {
		return nil
	}
	charged := min(weight, c.reserved)
	c.reserved -= charged
	budget := &c.plugin.engine.budget
	charge := &delivery{budget: budget, bytes: charged}
	budget.undelivered.Add(1)
	stop := context.AfterFunc(ctx, charge.end)
	runtime.AddCleanup(response, func(charge *delivery) {
		stop() // a context that lives on would reference charge
		charge.end()
	}, charge)
	return nil
}

// delivery is the charge for an undelivered response.
type delivery struct {
	budget *budget
	bytes  int64
	ended  atomic.Bool
}

// end ends the charge. It may be called twice.
func (d *delivery) end() {
	if d.ended.CompareAndSwap(false, true) {
		d.budget.undelivered.Add(-1)
		d.budget.release(d.bytes)
	}
}

const (
	// elementBytes is the approximate memory of a list element in a response, such as a content block, including the
	// garbage of growing the list.
	elementBytes = 600
	// valueBytes is the minimum memory of any other value: a string header.
	valueBytes = 16
	// textCopies is the number of copies of the text of a structured member while it is inserted.
	textCopies = 3
	// encodings counts the copies of a response during delivery: one masked or completed, one encoded.
	encodings = 2
)

// readingBytes estimates the memory that decoding a response takes, in addition to the response itself.
func readingBytes(data []byte, blobs [][]byte) int64 {
	n := 2 * int64(len(data)) // decoded, and completed or masked
	for _, b := range blobs {
		n += textCopies * int64(len(b))
	}
	if len(data) < freeReservation {
		return n
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = jsonstring.End(data, i+1)
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth <= 2 {
				n += elementBytes
			} else {
				n += valueBytes
			}
		}
	}
	return n
}

// deliveryBytes estimates the memory of an answer until it has been delivered. source is the size of the guest's
// response, which the answer keeps; it is zero for an answer that was not decoded from one. whole reports whether all
// texts come from it: in the answer they are not longer then, because it has only the escape sequences that JSON
// requires.
func deliveryBytes(r *abi.Response, source int64, whole bool) int64 {
	structured := int64(len(r.StructuredContent))
	held, encoded := source, int64(0)
	if whole = whole && source > 0; whole {
		held = max(0, source-structured)
		encoded = held
	}
	text := func(s string) {
		if !whole {
			held += int64(len(s))
			encoded += int64(jsonstring.QuotedLen(s))
		}
	}
	data := func(b []byte) {
		held += int64(len(b))
		encoded += int64(base64.StdEncoding.EncodedLen(len(b)))
	}
	contents := func(c *abi.ResourceContents) {
		text(c.Text)
		data(c.Data)
	}
	block := func(c *abi.Content) {
		held += elementBytes
		text(c.Text)
		data(c.Data)
		if c.Resource != nil {
			contents(c.Resource)
		}
	}
	for i := range r.Content {
		block(&r.Content[i])
	}
	for i := range r.Contents {
		held += elementBytes
		contents(&r.Contents[i])
	}
	for i := range r.Messages {
		block(&r.Messages[i].Content)
	}
	if r.Completion != nil {
		for _, value := range r.Completion.Values {
			held += valueBytes
			text(value)
		}
	}
	if len(r.Content) == 0 {
		structured *= 2 // it is repeated as a text block
	}
	return held + structured + encodings*(encoded+structured)
}
