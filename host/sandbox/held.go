package sandbox

import (
	"context"
	"encoding/base64"
	"runtime"
	"sync/atomic"

	"github.com/hako-run/hako/pdk/abi"
)

// What the host itself holds for a call is charged to the memory budget: the request, the copies that are made of an answer while it is
// read, and the answer until it has been delivered. Each is charged before it is there.

// freeHolding is how many bytes a call may make the host hold before any are charged. Most calls stay below.
const freeHolding = 64 << 10

// hold charges n bytes that the host is about to hold until the call has ended. It waits for them as for a guest's memory, and fails as
// budget.wait does.
func (c *call) hold(n int64) error {
	c.owed += n
	if c.owed < freeHolding {
		return nil
	}
	if err := c.plugin.engine.budget.wait(c.ctx, c.Plugin, c.owed, c.patience); err != nil {
		return err
	}
	c.held, c.owed = c.held+c.owed, 0
	return nil
}

// mustHold is hold for a host function: the guest traps if it fails.
func (c *call) mustHold(n int64) {
	if err := c.hold(n); err != nil {
		panic(err)
	}
}

// drop ends the charge for what the call made the host hold.
func (c *call) drop() {
	if c.held > 0 {
		c.plugin.engine.budget.give(c.held)
		c.held = 0
	}
}

// deliver changes the charge to that for the answer on its way. It ends with ctx, which a frontend ends when it has delivered the
// answer, or else when the answer is garbage.
func (c *call) deliver(ctx context.Context, response *abi.Response) error {
	weight := weigh(response)
	if weight < freeHolding {
		return nil
	}
	if more := weight - c.held - c.owed; more > 0 {
		c.ctx = ctx // the call's time is over, and its caller still waits
		if err := c.hold(more); err != nil {
			return err
		}
	}
	if c.held == 0 {
		return nil
	}
	charged := min(weight, c.held)
	c.held -= charged
	budget := &c.plugin.engine.budget
	way := &delivery{budget: budget, bytes: charged}
	budget.undelivered.Add(1)
	stop := context.AfterFunc(ctx, way.end)
	runtime.AddCleanup(response, func(way *delivery) {
		stop() // a context that lives on would keep it
		way.end()
	}, way)
	return nil
}

// delivery is the charge for an answer on its way.
type delivery struct {
	budget *budget
	bytes  int64
	ended  atomic.Bool
}

// end ends the charge. It may be called twice.
func (d *delivery) end() {
	if d.ended.CompareAndSwap(false, true) {
		d.budget.undelivered.Add(-1)
		d.budget.give(d.bytes)
	}
}

const (
	// elementBytes is about what an element of a list in an answer takes, such as a content block, with the lists that were outgrown.
	elementBytes = 600
	// valueBytes is what another value takes at least: the header of a string.
	valueBytes = 16
	// textCopies is how often the text of a member of structured content is copied while it is put in place.
	textCopies = 3
	// encodings is how many copies of an answer there are on its way: masked or completed, and encoded.
	encodings = 2
)

// readingBytes is about how much memory it takes to read a response, besides the response itself.
func readingBytes(data []byte, blobs [][]byte) int64 {
	n := 2 * int64(len(data)) // decoded, and completed or masked
	for _, b := range blobs {
		n += textCopies * int64(len(b))
	}
	if len(data) < freeHolding {
		return n
	}
	depth, text := 0, false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case text:
			if b == '\\' {
				i++
			} else if b == '"' {
				text = false
			}
		case b == '"':
			text = true
		case b == '{', b == '[':
			depth++
		case b == '}', b == ']':
			depth--
		case b == ',' && depth <= 2:
			n += elementBytes
		case b == ',':
			n += valueBytes
		}
	}
	return n
}

// weigh is about how much memory an answer takes until it has been delivered.
func weigh(r *abi.Response) int64 {
	var held, encoded int64
	text := func(s string) {
		held += int64(len(s))
		encoded += quotedBytes(s)
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
	structured := int64(len(r.StructuredContent))
	if len(r.Content) == 0 {
		structured *= 2 // it is repeated as a text
	}
	return held + structured + encodings*(encoded+structured)
}

// quotedBytes is about how long a text is as JSON.
func quotedBytes(s string) int64 {
	n := int64(len(s))
	if len(s) < freeHolding/8 {
		return n
	}
	const controlEscape = len(`\u0000`) - 1
	for i := range len(s) {
		if b := s[i]; b < ' ' {
			n += int64(controlEscape)
		} else if b == '"' || b == '\\' {
			n++
		}
	}
	return n
}
