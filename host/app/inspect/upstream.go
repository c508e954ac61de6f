package inspect

import (
	"time"

	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// stateUnoffered is the state of a server that is connected, but of which nothing is offered.
const stateUnoffered = "unoffered"

// Upstream is the state of an upstream server, as JSON.
type Upstream struct {
	Name      string   `json:"name"`
	State     string   `json:"state"`
	Transport string   `json:"transport"`
	Prefix    string   `json:"prefix"`
	Protocol  string   `json:"protocol,omitempty"`
	Server    string   `json:"server,omitempty"`
	Version   string   `json:"version,omitempty"`
	Tools     int      `json:"tools"`
	Prompts   int      `json:"prompts"`
	Resources int      `json:"resources"`
	Omitted   []string `json:"omitted,omitempty"`
	Error     string   `json:"error,omitempty"`
	// Serving is the state in the hako serve that runs on this machine, or nil.
	Serving *UpstreamState `json:"serving,omitempty"`
}

// UpstreamState is the state of an upstream server and the time from which on it is in this state.
type UpstreamState struct {
	State mcpclient.State `json:"state"`
	Since time.Time       `json:"since"`
}

// Upstreams returns the states of upstream servers, and whether one of them is down or offers nothing. serving has the
// states in the hako serve that runs on this machine, if there is one.
func Upstreams(list []mcpclient.Status, serving map[string]UpstreamState) (shown []Upstream, failed bool) {
	shown = []Upstream{}
	for _, s := range list {
		state := string(s.State)
		if s.State == mcpclient.Up && s.Tools+s.Prompts+s.Resources == 0 && len(s.Omitted) > 0 {
			state = stateUnoffered
		}
		failed = failed || s.State == mcpclient.Down || state == stateUnoffered
		shown = append(shown, Upstream{
			s.Name, state, s.Transport, s.Prefix, s.Protocol, s.Server, s.Version, s.Tools, s.Prompts, s.Resources,
			s.Omitted, s.Error, nil,
		})
		if running, ok := serving[s.Name]; ok {
			shown[len(shown)-1].Serving = &running
		}
	}
	return shown, failed
}

// Unlisted names the upstream servers whose tools are not known, because they are down or slow.
func Unlisted(servers []mcpclient.Status) (names []string) {
	for _, s := range servers {
		if !s.Listed && s.State != mcpclient.Disabled {
			names = append(names, s.Name)
		}
	}
	return names
}
