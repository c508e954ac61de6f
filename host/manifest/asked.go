package manifest

import "time"

// DefaultCeilings are the most that a manifest gets of each limit unless the operator says otherwise.
var DefaultCeilings = Limits{
	Time:          10 * time.Minute,
	CPU:           1_000_000,
	Memory:        1 << 30,
	Input:         64 << 20,
	Output:        64 << 20,
	Log:           1 << 20,
	Concurrency:   256,
	Queue:         4096,
	QueueWait:     5 * time.Minute,
	Rate:          1_000_000,
	OpenFiles:     512,
	Requests:      10_000,
	Calls:         1000,
	ParallelCalls: 64,
}

// LimitKeys are the keys of Limits, as manifests and the configuration have them.
var LimitKeys = []string{"time", "cpu", "memory", "input", "output", "log", "concurrency", "queue", "queueWait", "rate",
	"openFiles", "requests", "calls", "parallelCalls"}

// combine returns the limits that f makes of each of l and o.
func (l Limits) combine(o Limits, f func(a, b int64) int64) Limits {
	count := func(a, b int) int { return int(f(int64(a), int64(b))) }
	duration := func(a, b time.Duration) time.Duration { return time.Duration(f(int64(a), int64(b))) }
	return Limits{
		Time: duration(l.Time, o.Time), CPU: count(l.CPU, o.CPU), Memory: f(l.Memory, o.Memory),
		Input:  f(l.Input, o.Input),
		Output: f(l.Output, o.Output), Log: f(l.Log, o.Log), Concurrency: count(l.Concurrency, o.Concurrency),
		Queue:     count(l.Queue, o.Queue),
		QueueWait: duration(l.QueueWait, o.QueueWait), Rate: count(l.Rate, o.Rate),
		OpenFiles: count(l.OpenFiles, o.OpenFiles),
		Requests:  count(l.Requests, o.Requests),
		Calls:     count(l.Calls, o.Calls), ParallelCalls: count(l.ParallelCalls, o.ParallelCalls),
	}
}

// Within returns l with no field larger than that of ceilings.
func (l Limits) Within(ceilings Limits) Limits {
	return l.combine(ceilings, func(a, b int64) int64 { return min(a, b) })
}

// Beyond returns the fields of l that are larger than those of o; the others are zero.
func (l Limits) Beyond(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 {
		if a > b {
			return a
		}
		return 0
	})
}

// Max returns the larger of each field.
func (l Limits) Max(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 { return max(a, b) })
}

// Without returns the fields of l that o does not state.
func (l Limits) Without(o Limits) Limits {
	return l.combine(o, func(a, b int64) int64 {
		if b != 0 {
			return 0
		}
		return a
	})
}

// askedLimits are the limits, of the plugin or any of its tools, that are larger than the defaults.
func (m *Manifest) askedLimits() Limits {
	most := m.Limits
	for _, t := range m.Tools {
		most = most.Max(t.Limits)
	}
	return most.Beyond(DefaultLimits)
}

// Claims that a tool's hints make, each of which a policy may rely on to allow more.
const (
	ClaimReadOnly    = "readOnly"
	ClaimHarmless    = "notDestructive"
	ClaimIdempotent  = "idempotent"
	ClaimClosedWorld = "closedWorld"
)

// Claims are those that the hints make beyond MCP's defaults.
func (a Annotations) Claims() []string {
	var claims []string
	for _, hint := range []struct {
		value *bool
		when  bool
		claim string
	}{
		{a.ReadOnlyHint, true, ClaimReadOnly}, {a.DestructiveHint, false, ClaimHarmless},
		{a.IdempotentHint, true, ClaimIdempotent}, {a.OpenWorldHint, false, ClaimClosedWorld},
	} {
		if hint.value != nil && *hint.value == hint.when {
			claims = append(claims, hint.claim)
		}
	}
	return claims
}

// askedClaims returns the claims of the tools' hints, by tool.
func (m *Manifest) askedClaims() map[string][]string {
	var claims map[string][]string
	for _, t := range m.Tools {
		if list := t.Annotations.Claims(); list != nil {
			if claims == nil {
				claims = map[string][]string{}
			}
			claims[t.Name] = list
		}
	}
	return claims
}
