package main

import (
	"github.com/spf13/cobra"

	"github.com/hako-run/hako/host"
	"github.com/hako-run/hako/host/app/config"
	"github.com/hako-run/hako/host/store"
	"github.com/hako-run/hako/host/upstream/mcpclient"
)

// view gives a command the configuration and the plugins under it.
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
	open := c.OpenStore
	if readOnly {
		open = c.InspectStore
	}
	return a.withShared(cmd.Context(), c, open, func(s *store.Store) (err error) {
		h, err := a.hostFor(cmd.Context(), c, func(o *host.Options) { o.ConsentStore, o.ReadOnly = s, readOnly })
		if err != nil {
			return err
		}
		defer func() { err = closing(h, err) }()
		return do(&view{config: c, store: s, host: h, plugins: h.Plugins()})
	})
}

// withTools calls do with the plugins of the configuration, and the tools of its upstream servers.
func (a *app) withTools(cmd *cobra.Command, do func(*view) error) error {
	return a.withPlugins(cmd, func(v *view) error {
		return a.withUpstreams(cmd.Context(), v.config, v.host.Catalog(),
			func([]mcpclient.Status) error { return do(v) })
	})
}
