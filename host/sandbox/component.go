package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/broker"
	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/host/wasm/link"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// linkComponent links the interfaces that a component imports.
func (p *Plugin) linkComponent(ctx context.Context, code *code, c *component.Component) error {
	if p.spec.Adapter == nil {
		return errors.New("it is a component, and no adapter says how to call it")
	}
	modules := make([]link.Module, len(code.modules))
	for id := range code.modules {
		modules[id] = code.modules[id].Module
	}
	var err error
	code.program, err = link.Compile(ctx, c, &link.Options{
		Runtime: code.runtime, Modules: modules, Import: p.importedFunction,
		Current: func(ctx context.Context) *link.Instance { return callOf(ctx).instance.linked },
	})
	return err
}

// importedFunction returns the host's function. It returns nil if hako has the interface without that function, and an
// error if it lacks the interface.
func (p *Plugin) importedFunction(imported, function string) (link.HostFunc, error) {
	name, version, _ := strings.Cut(imported, "@")
	found := false
	for i := range p.spec.Interfaces {
		has := &p.spec.Interfaces[i]
		if has.Name != name {
			continue
		}
		if has.Version != "" && has.Version != minorVersion(version) {
			return nil, fmt.Errorf("it imports %s, and hako has version %s of it: build for that one",
				imported, has.Version)
		}
		found = true
		if f := has.Functions[function]; f != nil {
			return interfaceFunction(f), nil
		}
	}
	if !found {
		return nil, fmt.Errorf(
			"it imports the interface %s, which hako does not have or the plugin's permissions do not "+
				"include", imported)
	}
	return nil, nil
}

// minorVersion returns the part of a version that compatible versions have in common: "0.2" of 0.2.10, "1" of 1.2.3.
func minorVersion(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	if major != "0" {
		return major
	}
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// interfaceFunction adapts a function to package link. Like hostFunction, it releases the processor slot meanwhile and
// stops a canceled call.
func interfaceFunction(f broker.InterfaceFunc) link.HostFunc {
	return func(ctx context.Context, args []any) any {
		c := callOf(ctx)
		c.turn.enterHost()
		result := f(ctx, &c.Call, args)
		if err := c.turn.leaveHost(ctx); err != nil {
			panic(err)
		}
		c.Charge(0)
		return result
	}
}

// startComponent instantiates the modules of a component. data has the data segments of each that its code was loaded
// without.
func (i *instance) startComponent(ctx context.Context, code *code, data [][]rewrite.Segment) error {
	i.linked = code.program.NewInstance(link.Host{
		Instantiate: func(ctx context.Context, id int) (api.Module, error) {
			config := wazero.NewModuleConfig().WithName("").WithStartFunctions()
			return i.instantiate(ctx, code, id, data, config)
		},
		Charge:  func(steps int64) { i.call.Charge(steps) },
		Reserve: func(bytes int64) error { return i.call.reserveValues(bytes) },
		Release: func(bytes int64) { i.call.releaseValues(bytes) },
		CheckResult: func(bytes int64) error {
			if guest := (&Guest{i.call}); bytes > guest.Limits().Output {
				return guest.OutputLimitError()
			}
			return nil
		},
	})
	return i.linked.Start(ctx)
}

// usable reports whether further calls can be made.
func (i *instance) usable() bool { return i.linked == nil || i.linked.Failed() == nil }
