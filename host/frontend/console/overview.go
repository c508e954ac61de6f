package console

import (
	"cmp"
	"path/filepath"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/credential"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// Problem is a problem for the operator, with its remedy.
type Problem struct {
	// Kind is "plugin", "policy", "audit", "upstream", "credential", "certificate", "store" or "reload". Name is the
	// name of the thing, if it has one.
	Kind string `json:"kind"`
	Name string `json:"name,omitempty"`
	// State is the state of a plugin, an upstream server or a credential, for which the page has its own words.
	State  string `json:"state,omitempty"`
	Text   string `json:"text,omitempty"`
	Remedy string `json:"remedy,omitempty"`
}

// maxProblems bounds the listed problems.
const maxProblems = 100

type overviewJSON struct {
	Plugins   map[host.State]int      `json:"plugins"`
	Tools     int                     `json:"tools"`
	Calls     callsJSON               `json:"calls"`
	Approvals map[string]int          `json:"approvals"`
	Upstreams map[mcpclient.State]int `json:"upstreams"`
	Replicas  int                     `json:"replicas"`
	Audit     auditJSON               `json:"audit"`
	Problems  []Problem               `json:"problems"`
	Build     Build                   `json:"build"`
	Started   time.Time               `json:"started"`
}

type callsJSON struct {
	PerSecond         float64 `json:"perSecond"`
	FailuresPerSecond float64 `json:"failuresPerSecond"`
	LastMinute        uint32  `json:"lastMinute"`
	FailedLastMinute  uint32  `json:"failedLastMinute"`
	InFlight          int64   `json:"inFlight"`
	P50               float64 `json:"p50Ms"`
	P95               float64 `json:"p95Ms"`
	P99               float64 `json:"p99Ms"`
}

type auditJSON struct {
	On       bool      `json:"on"`
	Verified time.Time `json:"verified,omitzero"`
	OK       *bool     `json:"ok,omitempty"`
}

// overview returns the state of the host. What cannot be determined is listed as a problem.
func (c *Console) overview(q *request) (any, error) {
	answer := &overviewJSON{
		Plugins: map[host.State]int{}, Upstreams: map[mcpclient.State]int{}, Approvals: map[string]int{"waiting": 0},
		Tools: len(c.options.Host.Catalog().View().Tools), Calls: c.options.Traffic.rates(c.options.Traffic.now()),
		Replicas: 1,
		Problems: []Problem{}, Build: c.options.Build, Started: c.started.UTC(),
	}
	c.countPlugins(answer, q.language)
	c.countUpstreams(answer)
	for _, look := range []func(*overviewJSON, *request) error{c.countApprovals, c.countReplicas, c.lookAtCredentials} {
		if err := look(answer, q); err != nil {
			c.logger.Warn("make the overview of the console", "err", err)
			answer.add(Problem{Kind: "store", Text: faultStore.text.In(q.language),
				Remedy: faultStore.remedy.In(q.language)})
		}
	}
	c.lookAtAudit(answer, q.language)
	if c.options.Problems != nil {
		answer.add(c.options.Problems.Problems(q.language)...)
	}
	return answer, nil
}

// add adds problems that are not listed yet.
func (o *overviewJSON) add(list ...Problem) {
	for _, p := range list {
		if n := len(o.Problems); n < maxProblems && (n == 0 || o.Problems[n-1] != p) {
			o.Problems = append(o.Problems, p)
		}
	}
}

// rates returns the figures of the last minute.
func (t *Traffic) rates(now time.Time) callsJSON {
	t.mu.Lock()
	defer t.mu.Unlock()
	points := int(time.Minute / hour.step)
	total := t.all.sum(now, points)
	// The newest point is incomplete.
	covered := (time.Minute - hour.step + time.Duration(now.UnixNano()%int64(hour.step))).Seconds()
	return callsJSON{
		float64(total.calls) / covered, float64(total.failures) / covered, total.calls, total.failures,
		t.inFlight.Load(),
		total.quantile(0.5), total.quantile(0.95), total.quantile(0.99),
	}
}

func (c *Console) countPlugins(answer *overviewJSON, language string) {
	for _, state := range host.States {
		answer.Plugins[state] = 0
	}
	for _, p := range c.options.Host.Plugins() {
		answer.Plugins[p.State]++
		problem := Problem{Kind: "plugin", Name: cmp.Or(p.Name, filepath.Base(p.Path)), State: string(p.State),
			Text: whyNot(&p, language)}
		switch {
		case p.State == host.Broken, p.State == host.Conflict:
			answer.add(problem)
		case p.State == host.Pending && p.NeedsConsent:
			problem.Remedy = manifest.Text{"en": "Look at what it asks for, and approve it or say that it is not wanted.",
				"ja": "求めている権限を確認し、承認するか、不要としてください。"}.In(language)
			answer.add(problem)
		}
	}
}

func (c *Console) countUpstreams(answer *overviewJSON) {
	for _, state := range mcpclient.States {
		answer.Upstreams[state] = 0
	}
	for _, s := range c.upstreamStatus() {
		answer.Upstreams[s.State]++
		if s.State == mcpclient.Down {
			answer.add(Problem{Kind: "upstream", Name: s.Name, State: string(s.State), Text: s.Error})
		}
	}
}

func (c *Console) countApprovals(answer *overviewJSON, q *request) error {
	list, err := c.options.Approvals.Waiting(q.Context(), nil)
	answer.Approvals["waiting"] = len(list)
	return err
}

func (c *Console) countReplicas(answer *overviewJSON, q *request) error {
	list, err := c.options.Store.Replicas(q.Context())
	answer.Replicas = max(1, len(list))
	return err
}

func (c *Console) lookAtCredentials(answer *overviewJSON, q *request) error {
	list, err := c.credentialStatus(q)
	for _, s := range list {
		if s.State == credential.Reconnect || s.State == credential.Unusable {
			answer.add(Problem{Kind: "credential", Name: s.Credential, State: s.State, Remedy: s.Remedy})
		}
	}
	return err
}

func (c *Console) lookAtAudit(answer *overviewJSON, language string) {
	if c.options.Journal == nil {
		return
	}
	check := c.check.snapshot()
	answer.Audit = auditJSON{On: true, Verified: check.Finished, OK: check.OK}
	if err := c.options.Journal.Ready(); err != nil {
		answer.add(Problem{Kind: "audit", Text: err.Error(), Remedy: manifest.Text{
			"en": "Calls are refused until records can be written: free disk space, or fix the directory.",
			"ja": "記録できるようになるまで呼び出しは拒否されます。空き容量を確保するか、ディレクトリを修復してください。",
		}.In(language)})
	}
	if check.OK != nil && !*check.OK {
		answer.add(Problem{Kind: "audit", Text: manifest.Text{
			"en": "The audit log failed verification.", "ja": "監査ログの検証に失敗しました。",
		}.In(language), Remedy: "hako audit verify"})
	}
}
