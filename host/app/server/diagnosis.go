package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/inspect"
	"github.com/hako-run/hako/host/upstream/mcpclient"
	"github.com/hako-run/hako/internal/address"
)

// DiagnosisPath is the path at which a running server answers 'hako doctor' on this machine.
const DiagnosisPath = "/diagnosis"

// Diagnosis is a running server's report about itself. It has names and states, and neither causes nor settings.
type Diagnosis struct {
	Version string `json:"version"`
	// Plugins are those that are not in service, with their states.
	Plugins map[string]string `json:"plugins"`
	// Upstreams are all upstream servers that are not disabled.
	Upstreams map[string]inspect.UpstreamState `json:"upstreams"`
	// Status lists other conditions that an operator should look at.
	Status []string `json:"status"`
	// StoreMS is the time of a transaction of the store in milliseconds. It is negative if the store failed.
	StoreMS float64 `json:"storeMs"`
}

// storeTime bounds the transaction that measures the store.
const storeTime = 2 * time.Second

// diagnosis serves a Diagnosis to clients on this machine.
func (w *web) diagnosis(out http.ResponseWriter, r *http.Request) {
	if !fromThisMachine(r) {
		http.NotFound(out, r)
		return
	}
	s := w.server
	d := Diagnosis{Version: s.Build.Version, Plugins: map[string]string{},
		Upstreams: map[string]inspect.UpstreamState{},
		Status:    append([]string{}, s.status()...)}
	for _, p := range s.Plugins() {
		if p.State != host.Active {
			d.Plugins[p.Title()] = string(p.State)
		}
	}
	for _, u := range w.upstreams.Status() {
		if u.State != mcpclient.Disabled {
			d.Upstreams[u.Name] = inspect.UpstreamState{State: u.State, Since: u.Since.UTC()}
		}
	}
	ctx, cancel := context.WithTimeout(r.Context(), storeTime)
	defer cancel()
	begin := time.Now()
	err := s.governance.Store.View(ctx, func(tx *sql.Tx) error {
		var one int
		return tx.QueryRowContext(ctx, "SELECT 1").Scan(&one)
	})
	d.StoreMS = float64(time.Since(begin).Microseconds()) / 1000
	if err != nil {
		d.StoreMS = -1
	}
	out.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(out).Encode(d) // a client that has gone misses nothing
}

// fromThisMachine reports whether a program on this machine has sent the request: under a loopback name, which web
// pages of others cannot (DNS rebinding), and not through a proxy.
func fromThisMachine(r *http.Request) bool {
	remote, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil || !address.IsLoopbackHostport(r.Host) || r.Header.Get("X-Forwarded-For") != "" ||
		r.Header.Get("Forwarded") != "" {
		return false
	}
	own, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return address.IsLoopback(remote) || ok && address.Hostname(own.String()) == remote
}
