package pipeline

import (
	"time"

	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/pdk/abi"
)

// A call that waits for people sends progress reports: one after firstWaitingReport, because some answers come at once,
// then one every waitingReportInterval, because many clients cancel a silent call after a minute.
const (
	firstWaitingReport    = 200 * time.Millisecond
	waitingReportInterval = 10 * time.Second
)

var waitingText = manifest.Text{"en": "Waiting for approval.", "ja": "承認を待っています。"}

// startWaitingReports sends progress reports until stop is called. At a terminal the question itself is visible.
func (p *Pipeline) startWaitingReports(call *Call) (stop func()) {
	if call.Progress == nil || call.Caller.Frontend == FrontendTerminal {
		return func() {}
	}
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		timer := time.NewTimer(firstWaitingReport)
		defer timer.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-timer.C:
				call.Progress(abi.Progress{Message: waitingText.In(p.locale(call))})
				timer.Reset(waitingReportInterval)
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}
