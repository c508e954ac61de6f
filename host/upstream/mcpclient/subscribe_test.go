package mcpclient_test

import (
	"sync/atomic"
	"testing"

	"github.com/hako-run/hako/host/catalog"
)

// TestUpdates: a server's news of a resource reaches those who asked for it, also after it was started again, and
// nobody else.
func TestUpdates(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "2025-11-25"} {
		t.Run("version "+version, func(t *testing.T) {
			t.Parallel()
			spec := child("plain", "plain")
			spec.ProtocolVersion = version
			r := newRig(t, spec)
			resource, ok := r.catalog.View().Resource("plain+memo://one")
			if !ok {
				t.Fatal("no resource")
			}
			teller := resource.Source.Backend.(catalog.Subscriber)
			var one, two atomic.Int32
			stop := teller.Subscribe("plain+memo://one", func() { one.Add(1) })
			defer teller.Subscribe("plain+memo://two", func() { two.Add(1) })()
			defer teller.Subscribe("other+memo://one", func() { t.Error("it is another server's") })()
			touched := func(what string) {
				t.Helper()
				before := one.Load()
				r.eventually(what, func() bool {
					r.call("plain_touch", `{"uri":"memo://one"}`)
					return one.Load() > before
				})
			}
			touched("the news")
			r.call("plain_die", "{}")
			r.eventually("the server to be back",
				func() bool { return text(r.call("plain_echo", `{"text":"x"}`)) == "x" })
			touched("the news of the one started again")
			stop()
			last := one.Load()
			for range 3 {
				r.call("plain_touch", `{"uri":"memo://one"}`)
			}
			if got := one.Load(); got > last+1 || two.Load() > 0 { // one may have been on its way
				t.Errorf("%d more after the end, %d for another", got-last, two.Load())
			}
		})
	}
}
