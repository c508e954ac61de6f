package agent

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/fakes/managedagents"
	"github.com/hako-run/hako/dev/kit/testlog"
)

// gauge counts the sessions that have other tools.
type gauge struct {
	noObserver
	outdated atomic.Int32
}

func (g *gauge) AgentOutdated(n int) { g.outdated.Add(int32(n)) }

// TestOtherTools has sessions whose tools are not those that hako offers by now.
func TestOtherTools(t *testing.T) {
	t.Parallel()
	custom := func(name string) string {
		return fmt.Sprintf(
			`{"type":"custom","name":%q,"description":"d","input_schema":{"type":"object","properties":{"n":{"type":"string"}}}}`, name)
	}
	for _, found := range []bool{false, true} {
		t.Run(fmt.Sprintf("found %t", found), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			if err := w.fake.Change(managedagents.DefaultAgent,
				`{"tools":[`+custom("echo")+`,`+custom("was_here")+`,{"type":"agent_toolset_20260401"}]}`); err != nil {
				t.Fatal(err)
			}
			session := w.fake.NewSession()
			var log testlog.Buffer
			counts := new(gauge)
			w.change = func(o *Options, timing *timing) {
				o.Logger, o.Observer, timing.inspect = log.Logger(), counts, 5*time.Millisecond
			}
			spec := Spec{Sessions: []string{session}}
			if found {
				spec = Spec{Agents: []string{managedagents.DefaultAgent}}
			}
			stop := start(t, w.newRunner(t, spec))
			eventually(t, "counted", func() bool { return counts.outdated.Load() == 1 })
			for _, want := range []string{"hako agent apply", "agent=" + managedagents.DefaultAgent, "version=2",
				"gone=[was_here]", "changed=[echo]", `unknown="[look people put]"`} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("the log does not have %s:\n%s", want, log.String())
				}
			}
			if err := stop(); err != nil || counts.outdated.Load() != 0 {
				t.Errorf("at the end %d sessions are counted, %v", counts.outdated.Load(), err)
			}
		})
	}
}

// TestDifferenceThatStands goes through looks at a session: a difference counts if it stands, and is said once.
func TestDifferenceThatStands(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	offers := Definitions(w.catalog.View().Tools, "en", nil)
	others := slices.Concat(offers, []Definition{define("of_another_program", "D.")})
	translated := slices.Clone(offers)
	translated[0].Description = "説明"
	for name, test := range map[string]struct {
		looks       [][]Definition
		unknown     string
		count, said int
	}{
		"no difference": {[][]Definition{offers, offers}, UnknownRefuse, 0, 0},
		"tools that come and go": {[][]Definition{offers, offers[1:], offers, offers[2:], offers[1:], offers},
			UnknownRefuse, 0, 0},
		"one that stands": {[][]Definition{offers[1:], offers[1:], offers[1:], offers[1:]}, UnknownRefuse,
			1, 1},
		"one that goes": {[][]Definition{offers[1:], offers[1:], offers}, UnknownRefuse, 0, 1},
		"another one": {[][]Definition{offers[1:], offers[1:], offers[2:], offers[2:]}, UnknownRefuse,
			1, 2},
		"tools of another program":    {[][]Definition{others, others}, UnknownLeave, 0, 0},
		"tools that nobody has":       {[][]Definition{others, others}, UnknownRefuse, 1, 1},
		"descriptions of another one": {[][]Definition{translated, translated}, UnknownRefuse, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var log testlog.Buffer
			w.change = func(o *Options, _ *timing) { o.Logger = log.Logger() }
			r := w.newRunner(t, Spec{Sessions: []string{"sesn_1"}, Unknown: test.unknown})
			s, seen := r.add("sesn_1", true), &inspection{warned: map[string]bool{}}
			for _, tools := range test.looks {
				s.tools = &sessionTools{agent: "agent_1", version: 1, tools: tools}
				r.compare(t.Context(), seen)
			}
			if said := strings.Count(log.String(), "hako agent apply"); seen.count != test.count || said != test.said {
				t.Errorf("%d sessions are counted, and it is said %d times:\n%s", seen.count, said, log.String())
			}
		})
	}
}

func TestSomeNames(t *testing.T) {
	t.Parallel()
	names := make([]string, 12)
	for i := range names {
		names[i] = fmt.Sprint(i)
	}
	if got := some(names); len(got) != 11 || got[10] != "and 2 more" || names[10] != "10" {
		t.Errorf("got %q", got)
	}
}
