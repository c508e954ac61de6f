package inspect

import "github.com/hako-run/hako/host/mcpclient"

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
}

// Upstreams returns the states of upstream servers, and whether one of them is down or offers nothing.
func Upstreams(list []mcpclient.Status) (shown []Upstream, failed bool) {
	shown = []Upstream{}
	for _, s := range list {
		state := string(s.State)
		if s.State == mcpclient.Up && s.Tools+s.Prompts+s.Resources == 0 && len(s.Omitted) > 0 {
			state = stateUnoffered
		}
		failed = failed || s.State == mcpclient.Down || state == stateUnoffered
		shown = append(shown, Upstream{
			s.Name, state, s.Transport, s.Prefix, s.Protocol, s.Server, s.Version, s.Tools, s.Prompts, s.Resources,
			s.Omitted, s.Error,
		})
	}
	return shown, failed
}

// Down names the upstream servers that are down, whose tools are not known.
func Down(servers []mcpclient.Status) (names []string) {
	for _, s := range servers {
		if s.State == mcpclient.Down {
			names = append(names, s.Name)
		}
	}
	return names
}
