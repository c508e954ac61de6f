package pipeline

import (
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// A call that waits for people says so: first after waitingFirst, because some answers come at once, then every waitingNext, because clients
// give up calls of which they hear nothing, many after a minute.
const (
	waitingFirst = 200 * time.Millisecond
	waitingNext  = 10 * time.Second
)

var waitingText = manifest.Text{"en": "Waiting for approval.", "ja": "承認を待っています。"}

// reportWaiting tells who follows the call that it waits for people, until stop is called. At a terminal the question itself says so.
func (p *Pipeline) reportWaiting(call *Call) (stop func()) {
	if call.Progress == nil || call.Caller.Door == DoorTerminal {
		return func() {}
	}
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(waitingFirst)
		defer timer.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-timer.C:
				call.Progress(abi.Progress{Message: waitingText.In(p.locale(call))})
				timer.Reset(waitingNext)
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}
