package host

import (
	"maps"
	"slices"

	"github.com/hako-run/hako/host/brokers/execbroker"
	"github.com/hako-run/hako/host/brokers/httpbroker"
	"github.com/hako-run/hako/host/brokers/sqlbroker"
	"github.com/hako-run/hako/host/brokers/toolbroker"
	"github.com/hako-run/hako/host/component/tool"
	"github.com/hako-run/hako/host/component/wasi"
	"github.com/hako-run/hako/host/manifest"
	"github.com/hako-run/hako/host/sandbox"
)

// brokers are the brokers of a plugin's permissions; those that it does not have are nil.
type brokers struct {
	http  *httpbroker.Broker
	sql   *sqlbroker.Broker
	exec  *execbroker.Broker
	tools *toolbroker.Broker
}

// configureComponent configures spec for a component. It sets the manifest of s, completed with its tools. For a
// component that lists its tools itself, it fails with errAsked until the listing is available.
func (h *Host) configureComponent(p *pluginFile, s *service, granted brokers, spec *sandbox.Spec) error {
	config, err := h.options().configure(p.manifest, s.grants)
	if err != nil {
		return err
	}
	adapter, err := tool.New(p.module.Component, p.manifest)
	if err != nil {
		return err
	}
	adapter.Equip(spec)
	options, err := h.wasiOptions(config, spec)
	if err != nil {
		return err
	}
	var listing []byte
	if adapter.Lists() {
		asked := *spec
		asked.Interfaces = wasi.New(options)
		if listing, err = h.askListing(p, config, asked, tool.List); err != nil {
			return err
		}
	}
	options.Mounts, options.HTTP = spec.Mounts, granted.http
	options.SQL, options.Exec, options.Tools = granted.sql, granted.exec, granted.tools
	spec.Interfaces = wasi.New(options)
	s.manifest, s.omitted, err = adapter.Complete(listing)
	return err
}

// wasiOptions connects the interfaces of WASI to the sandbox, without mounts and brokers. The environment of a
// component is its configuration.
func (h *Host) wasiOptions(config []byte, spec *sandbox.Spec) (*wasi.Options, error) {
	texts, err := manifest.ConfigTexts(config)
	if err != nil {
		return nil, err
	}
	limits := spec.Limits.Or(manifest.DefaultLimits)
	options := &wasi.Options{
		Now: spec.Clock, Monotonic: func() uint64 { return uint64(h.engine.Nanotime()) },
		OpenFiles: limits.OpenFiles, Memory: limits.Memory,
	}
	tool.Connect(options)
	for _, key := range slices.Sorted(maps.Keys(texts)) {
		options.Environment = append(options.Environment, [2]string{key, texts[key]})
	}
	return options, nil
}
