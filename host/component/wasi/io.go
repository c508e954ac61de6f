package wasi

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/brokers/file"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/fuel"
)

// io is wasi:io.
func (h *host) io() []broker.Interface {
	return []broker.Interface{
		wasi("io/error", functions{
			"[method]error.to-debug-string": func1(func(_ caller, e *ioError) any { return e.text }),
		}),
		wasi("io/poll", functions{
			"[method]pollable.ready": func1(func(c caller, p pollable) any { return p.ready(c) }),
			"[method]pollable.block": func1(func(c caller, p pollable) any {
				h.poll(c, []pollable{p})
				return nil
			}),
			"poll": func1(h.pollAll),
		}),
		wasi("io/streams", functions{
			"[method]input-stream.read":          func2(read),
			"[method]input-stream.blocking-read": func2(h.blockingRead),
			"[method]input-stream.skip":          func2(skip),
			"[method]input-stream.blocking-skip": func2(h.blockingSkip),
			"[method]input-stream.subscribe":     func1(func(_ caller, s inputStream) any { return subscribed(s) }),

			"[method]output-stream.check-write":              func1(checkWrite),
			"[method]output-stream.write":                    func2(write),
			"[method]output-stream.blocking-write-and-flush": func2(writeAndFlush),
			"[method]output-stream.flush":                    func1(flush),
			"[method]output-stream.blocking-flush":           func1(flush),
			"[method]output-stream.subscribe": func1(func(caller, outputStream) any {
				return always{}
			}),
			"[method]output-stream.write-zeroes":                    func2(writeZeroes),
			"[method]output-stream.blocking-write-zeroes-and-flush": func2(writeZeroes),
			"[method]output-stream.splice":                          func3(splice),
			"[method]output-stream.blocking-splice":                 func3(h.blockingSplice),
		}),
	}
}

// inputStream is wasi:io/streams.input-stream.
type inputStream interface {
	pollable
	// read returns up to n bytes, or none and no error if none are there yet. Its errors are errClosed and *ioError.
	read(c caller, n int) ([]byte, error)
}

// outputStream is wasi:io/streams.output-stream. All of them accept writes at once: what they write to is a file, the
// log or a buffer.
type outputStream interface {
	// check returns the error that a write would return. The errors of all methods are errClosed and *ioError.
	check(c caller) error
	// write writes all of p.
	write(c caller, p []byte) error
	flush(c caller) error
}

// maxTransfer bounds the bytes of one read or write. Guests have to expect short reads.
const maxTransfer = file.MaxTransfer

// errClosed is stream-error.closed.
var errClosed = errors.New("the stream is closed")

// ioError is wasi:io/error.error.
type ioError struct {
	text string
	// file and http are option<error-code> of wasi:filesystem and wasi:http.
	file, http component.Case
}

func (e *ioError) Error() string { return e.text }

// streamResult returns value, or err as a stream-error.
func streamResult(value any, err error) component.Case {
	failed := (*ioError)(nil)
	switch {
	case err == nil:
		return component.OK(value)
	case errors.As(err, &failed):
		return component.Failed(component.Case{Number: 0, Value: failed})
	}
	return component.Failed(component.Case{Number: 1})
}

// transfer returns how many of n bytes one read handles, and charges for them.
func transfer(c caller, n uint64) int {
	n = min(n, maxTransfer)
	c.Charge(fuel.CopySteps(n))
	return int(n)
}

func read(c caller, s inputStream, n uint64) any { return streamResult(readBytes(c, s, n)) }

func (h *host) blockingRead(c caller, s inputStream, n uint64) any {
	return streamResult(h.awaitBytes(c, s, n))
}

// readBytes returns a list that is never nil, so that it is a list<u8> without elements.
func readBytes(c caller, s inputStream, n uint64) ([]byte, error) {
	data, err := s.read(c, transfer(c, n))
	if data == nil {
		data = []byte{}
	}
	return data, err
}

// awaitBytes is readBytes that waits for the first byte.
func (h *host) awaitBytes(c caller, s inputStream, n uint64) ([]byte, error) {
	for {
		data, err := readBytes(c, s, n)
		if len(data) > 0 || err != nil || n == 0 {
			return data, err
		}
		h.poll(c, []pollable{s})
	}
}

func skip(c caller, s inputStream, n uint64) any {
	data, err := readBytes(c, s, n)
	return streamResult(uint64(len(data)), err)
}

func (h *host) blockingSkip(c caller, s inputStream, n uint64) any {
	data, err := h.awaitBytes(c, s, n)
	return streamResult(uint64(len(data)), err)
}

// checkWrite permits maxTransfer bytes.
func checkWrite(c caller, s outputStream) any { return streamResult(uint64(maxTransfer), s.check(c)) }

func write(c caller, s outputStream, p []byte) any {
	checkPermit(uint64(len(p)))
	return streamResult(nil, writeBytes(c, s, p))
}

// checkPermit ends the call of a guest that writes more than check-write permits.
func checkPermit(n uint64) {
	if n > maxTransfer {
		panic(fmt.Errorf("it writes %d bytes at once: check-write permits %d", n, maxTransfer))
	}
}

func writeBytes(c caller, s outputStream, p []byte) error {
	c.Charge(fuel.CopySteps(uint64(len(p))))
	if err := s.check(c); err != nil {
		return err
	}
	return s.write(c, p)
}

func writeAndFlush(c caller, s outputStream, p []byte) any {
	checkPermit(uint64(len(p)))
	err := writeBytes(c, s, p)
	if err == nil {
		err = s.flush(c)
	}
	return streamResult(nil, err)
}

func flush(c caller, s outputStream) any {
	err := s.check(c)
	if err == nil {
		err = s.flush(c)
	}
	return streamResult(nil, err)
}

func writeZeroes(c caller, s outputStream, n uint64) any {
	checkPermit(n)
	return writeAndFlush(c, s, make([]byte, n))
}

func splice(c caller, to outputStream, from inputStream, n uint64) any {
	return streamResult(copyStream(c, to, n, func() ([]byte, error) { return readBytes(c, from, n) }))
}

func (h *host) blockingSplice(c caller, to outputStream, from inputStream, n uint64) any {
	return streamResult(copyStream(c, to, n, func() ([]byte, error) { return h.awaitBytes(c, from, n) }))
}

// copyStream writes what next returns, unless to does not accept it.
func copyStream(c caller, to outputStream, n uint64, next func() ([]byte, error)) (uint64, error) {
	if err := to.check(c); err != nil {
		return 0, err
	}
	data, err := next()
	if err != nil {
		return 0, err
	}
	return uint64(len(data)), writeBytes(c, to, data)
}

// pollable is wasi:io/poll.pollable.
type pollable interface {
	ready(c caller) bool
	// event returns a channel that is closed when the pollable becomes ready, and the instant at which it becomes
	// ready; nil and 0 if there is none. It is called if ready has returned false.
	event() (<-chan struct{}, uint64)
}

// staller is a pollable that nothing but the guest itself makes ready.
type staller interface {
	// stall makes it ready with an error.
	stall(c caller)
}

// always is a pollable that is ready.
type always struct{}

func (always) ready(caller) bool                { return true }
func (always) event() (<-chan struct{}, uint64) { return nil, 0 }

// Lasting implements component.Lasting.
func (always) Lasting() {}

// subscription is a pollable for another one. Dropping it does not drop the other.
type subscription struct{ pollable }

// subscribed returns a pollable for s.
func subscribed(s pollable) any {
	if _, ok := s.(component.Lasting); ok {
		return always{}
	}
	return &subscription{s}
}

// maxSubscriptions bounds the pollables of one poll.
const maxSubscriptions = 1024

// pollAll returns the indexes of the ready pollables of a list.
func (h *host) pollAll(c caller, list []any) any {
	if len(list) == 0 {
		panic(errors.New("it polls an empty list, for which nothing can become ready"))
	}
	if len(list) > maxSubscriptions {
		panic(fmt.Errorf("it polls %d pollables at once: at most %d are possible", len(list), maxSubscriptions))
	}
	all := make([]pollable, len(list))
	for i := range list {
		all[i] = arg[pollable](list, i)
	}
	return h.poll(c, all)
}

// poll waits until one of the pollables is ready, and returns the indexes of those that are. The end of the call ends
// it.
func (h *host) poll(c caller, all []pollable) (ready []any) {
	for {
		c.Charge(int64(len(all)) * broker.EntrySteps)
		for i, p := range all {
			if p.ready(c) {
				ready = append(ready, uint64(i))
			}
		}
		if ready != nil {
			return ready
		}
		h.wait(c, all)
	}
}

// maxWait bounds the time until timers are compared with the clock again.
const maxWait = time.Hour

// wait waits for the event of a pollable, for the first timer, or for the end of the call, which it panics with.
func (h *host) wait(c caller, all []pollable) {
	cases := []reflect.SelectCase{receive(c.ctx.Done())}
	now, first := h.Monotonic(), uint64(0)
	for _, p := range all {
		event, at := p.event()
		if at > 0 && (first == 0 || at < first) {
			first = at
		}
		if event != nil {
			cases = append(cases, receive(event))
		}
	}
	if first > 0 {
		alarm := time.NewTimer(time.Duration(min(first-min(first, now), uint64(maxWait))))
		defer alarm.Stop()
		cases = append(cases, receive(alarm.C))
	}
	if len(cases) == 1 && stallAll(c, all) {
		return
	}
	if chosen, _, _ := reflect.Select(cases); chosen == 0 {
		panic(c.ctx.Err())
	}
}

func receive[T any](from <-chan T) reflect.SelectCase {
	return reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(from)}
}

// stallAll makes pollables ready for which the guest would wait in vain, and reports whether there is one.
func stallAll(c caller, all []pollable) (found bool) {
	for _, p := range all {
		if s, ok := p.(*subscription); ok {
			p = s.pollable
		}
		if s, ok := p.(staller); ok {
			s.stall(c)
			found = true
		}
	}
	return found
}
