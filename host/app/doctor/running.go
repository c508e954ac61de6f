package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/app/server"
	"github.com/hako-run/hako/host/frontend/mcpserver"
	"github.com/hako-run/hako/host/outbound"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

const (
	// runningTimeout bounds the request to the running server, maxDiagnosis its answer, in bytes.
	runningTimeout = 5 * time.Second
	maxDiagnosis   = 1 << 20
	// renewBefore is the time before its end at which a certificate should have been renewed.
	renewBefore = 14 * 24 * time.Hour
	// slowConnection is the time after which a server that is still being connected is reported.
	slowConnection = time.Minute
)

func moment(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

// errOther is the error of a server that is no hako of this version.
var errOther = errors.New("it is not this version of hako")

// ask returns what the server that runs on this machine under a configuration says about itself, and the end of its
// certificate, which is zero without TLS. If nothing listens there, the error matches syscall.ECONNREFUSED.
func ask(ctx context.Context, c *config.Config) (_ *server.Diagnosis, until time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, runningTimeout)
	defer cancel()
	transport := outbound.NewTransport(nil)
	defer transport.CloseIdleConnections()
	transport.Proxy = nil
	// The server is on this machine, and its certificate is for another name. Running examines its validity.
	transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	url := strings.TrimSuffix(c.HTTP.URL(), mcpserver.Path) + server.DiagnosisPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, until, err
	}
	request.Host = "localhost"
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, until, err
	}
	defer response.Body.Close()
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		until = response.TLS.PeerCertificates[0].NotAfter
	}
	d := new(server.Diagnosis)
	data, err := io.ReadAll(io.LimitReader(response.Body, maxDiagnosis))
	if err != nil || response.StatusCode != http.StatusOK || json.Unmarshal(data, d) != nil {
		return nil, until, errOther
	}
	return d, until, nil
}

// Upstreams returns the states of the upstream servers in the server that runs on this machine, or nil if none does.
func Upstreams(ctx context.Context, c *config.Config) map[string]inspect.UpstreamState {
	d, _, err := ask(ctx, c)
	if err != nil {
		return nil
	}
	return d.Upstreams
}

// Running asks the server that runs on this machine under a configuration. version is that of this program.
func Running(ctx context.Context, c *config.Config, version string) []Finding {
	const check = "server"
	d, until, err := ask(ctx, c)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return []Finding{{LevelOK, check, "hako serve does not run at " + c.HTTP.Address, ""}}
	case errors.Is(err, errOther):
		return []Finding{{LevelWarning, check,
			fmt.Sprintf("what runs at %s is another program, or another version of hako", c.HTTP.Address),
			"restart hako serve after an update; if another program has the address, choose another one: http.address"}}
	case err != nil:
		return []Finding{{LevelError, check, fmt.Sprintf("%s does not respond: %v", c.HTTP.Address, err),
			"check the log of hako serve, or restart it; see also http.address"}}
	}
	findings := diagnosed(d, version)
	if !until.IsZero() {
		findings = append(findings, certificate(until, time.Now()))
	}
	return findings
}

// diagnosed returns the findings of a running server.
func diagnosed(d *server.Diagnosis, version string) []Finding {
	findings := []Finding{{LevelOK, "server", fmt.Sprintf("hako %s runs", d.Version), ""}}
	if d.Version != version {
		findings[0] = Finding{LevelWarning, "server",
			fmt.Sprintf("hako %s runs, and this program is %s", d.Version, version),
			"restart hako serve"}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Plugins)) {
		if state := host.State(d.Plugins[name]); state == host.Pending || state == host.Revoked {
			continue // Configuration says what they wait for
		}
		findings = append(findings, Finding{LevelWarning, "server",
			fmt.Sprintf("plugin %s is not in service: %s", name, d.Plugins[name]), "hako plugin list shows the reason"})
	}
	for _, name := range slices.Sorted(maps.Keys(d.Upstreams)) {
		switch u := d.Upstreams[name]; {
		case u.State == mcpclient.Down:
			findings = append(findings,
				Finding{LevelError, "server", fmt.Sprintf("upstream server %s is down since %s", name,
					moment(u.Since)), "hako upstreams shows the reason"})
		case u.State == mcpclient.Connecting && time.Since(u.Since) > slowConnection:
			findings = append(findings,
				Finding{LevelWarning, "server", fmt.Sprintf("upstream server %s is being connected since %s",
					name, moment(u.Since)), "hako upstreams shows its state"})
		}
	}
	for _, text := range d.Status {
		findings = append(findings, Finding{LevelWarning, "server", text, "the log of hako serve has the reason"})
	}
	latency := time.Duration(d.StoreMS * float64(time.Millisecond))
	switch {
	case d.StoreMS < 0:
		findings = append(findings, Finding{LevelError, "server", "the store does not respond",
			"check that the database runs and the disk has free space"})
	case latency > slowStore:
		findings = append(findings,
			Finding{LevelWarning, "server", fmt.Sprintf("the store answers in %s, and a call asks several times",
				latency.Round(time.Millisecond)), "run hako closer to the database, or reduce the load on the disk"})
	default:
		findings = append(findings, Finding{LevelOK, "server", fmt.Sprintf("the store answers in %s",
			latency.Round(10*time.Microsecond)), ""})
	}
	return findings
}

// certificate examines the end of the server's certificate.
func certificate(end, now time.Time) Finding {
	day := end.UTC().Format(time.DateOnly)
	switch left := end.Sub(now); {
	case left <= 0:
		return Finding{LevelError, "certificate", "the server's certificate has expired on " + day,
			"renew it: http.tls"}
	case left < renewBefore:
		return Finding{LevelWarning, "certificate",
			fmt.Sprintf("the server's certificate expires on %s, in %d days", day,
				int(left.Hours()/24)), "renew it: http.tls; hako reads the new files by itself"}
	}
	return Finding{LevelOK, "certificate", "the server's certificate is valid until " + day, ""}
}
