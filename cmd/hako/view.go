package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/mcpclient"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/internal/config"
	"github.com/hako-run/hako/internal/strictyaml"
)

// view is what a command sees: the configuration and the plugins under it.
type view struct {
	config  *config.Config
	store   *store.Store // nil: replicas share none
	host    *host.Host
	plugins []host.Status
}

// withPlugins calls do with the plugins of the configuration. Nothing of them runs.
func (a *app) withPlugins(cmd *cobra.Command, do func(*view) error) error {
	return a.viewPlugins(cmd, false, do)
}

// inspectPlugins is withPlugins without a change to any file.
func (a *app) inspectPlugins(cmd *cobra.Command, do func(*view) error) error {
	return a.viewPlugins(cmd, true, do)
}

func (a *app) viewPlugins(cmd *cobra.Command, readOnly bool, do func(*view) error) error {
	c, err := a.config(cmd)
	if err != nil {
		return err
	}
	withStore := a.withShared
	if readOnly {
		withStore = a.inspectShared
	}
	return withStore(cmd.Context(), c, func(s *store.Store) (err error) {
		h, err := a.hostFor(cmd.Context(), c, func(o *host.Options) { o.ConsentStore, o.ReadOnly = s, readOnly })
		if err != nil {
			return err
		}
		defer func() { err = closing(h, err) }()
		return do(&view{config: c, store: s, host: h, plugins: h.Plugins()})
	})
}

// withTools calls do with the plugins of the configuration, and the tools of its upstream servers, which are started
// for it.
func (a *app) withTools(cmd *cobra.Command, do func(*view) error) error {
	return a.withPlugins(cmd, func(v *view) error {
		return a.withUpstreams(cmd.Context(), v.config, v.host.Catalog(), everyUpstream,
			func([]mcpclient.Status) error { return do(v) })
	})
}

// find returns the plugin with this name, or in this file. Of several with one name it is the one that counts. A file
// whose name could not be read goes by that of the file.
func (v *view) find(name, file string) (*host.Status, error) {
	var found *host.Status
	var known []string
	for i := range v.plugins {
		p := &v.plugins[i]
		if sameFile(p.Path, file) || p.Name == "" && strings.TrimSuffix(filepath.Base(p.Path), ".wasm") == name {
			return p, nil
		}
		if p.Name != "" {
			known = append(known, p.Name)
		}
		if p.Name == name && (found == nil || found.State == host.Conflict) {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%s\nPlugins are looked for in the folders of the configuration, or of --plugins",
			strictyaml.Unknown("plugin", name, known))
	}
	return found, nil
}

func sameFile(a, b string) bool {
	a, errA := filepath.Abs(a)
	b, errB := filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}
