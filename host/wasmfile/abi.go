package wasmfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/hako-run/hako/host/wasm/component"
	"github.com/hako-run/hako/pdk/abi"
)

// hostABIs are the versions of the ABI that this host speaks.
var hostABIs = []int{abi.Version}

// ErrExtism is the error of Module.ABI for a module made for the Extism ABI.
var ErrExtism = errors.New("the module speaks the Extism ABI, not hako's")

// IsExtism reports whether the module is made for the Extism ABI. See manifest.ParseModule for what the
// manifest of such a plugin may hold.
func (m *Module) IsExtism() bool {
	if m.Component != nil {
		return false
	}
	_, err := m.ABI()
	return errors.Is(err, ErrExtism)
}

// CheckABI checks that hako can call the guest: a core module of ABI 1 or of the Extism ABI, or a component without
// asynchronous functions.
func (m *Module) CheckABI() error {
	switch {
	case m.Component == nil:
		if _, err := m.ABI(); !errors.Is(err, ErrExtism) {
			return err
		}
	case isAsync(m.Component):
		return fmt.Errorf("the component exports an asynchronous function: %w", component.ErrAsync)
	}
	return nil
}

// ABI returns the highest version of the guest ABI that both a core module and this host speak.
//
// It is an error if there is none, the text naming what both have, or if the module lacks an export that the ABI
// requires or has it with another type. The error matches ErrExtism for a module made for Extism.
func (m *Module) ABI() (int, error) {
	var guest []int
	for _, e := range m.Exports {
		number, marked := strings.CutPrefix(e.Name, abi.MarkerPrefix)
		if n, err := strconv.ParseUint(number, 10, 16); marked && err == nil && e.Kind == KindFunc {
			guest = append(guest, int(n))
		}
	}
	if len(guest) == 0 {
		return 0, m.noMarker()
	}
	slices.Sort(guest)
	for _, n := range slices.Backward(guest) {
		if slices.Contains(hostABIs, n) {
			return n, m.checkExports(n)
		}
	}
	return 0, fmt.Errorf("the module is built for ABI %s, and this host speaks ABI %s: %s", numbers(guest),
		numbers(hostABIs), remedy(guest))
}

// remedy returns which side of an ABI mismatch to rebuild or update.
func remedy(guest []int) string {
	if slices.Max(guest) > slices.Max(hostABIs) {
		return "update the host, or rebuild the plugin with an older PDK"
	}
	return "rebuild the plugin with a newer PDK"
}

func numbers(list []int) string {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = strconv.Itoa(n)
	}
	return strings.Join(texts, ", ")
}

// noMarker explains a module without any marker.
func (m *Module) noMarker() error {
	mcpExports := []string{"describe", "call", "list_tools", "call_tool"}
	isExtism := slices.ContainsFunc(m.Imports, func(i Import) bool { return strings.HasPrefix(i.Module, "extism:") })
	for _, name := range mcpExports {
		isExtism = isExtism || m.export(name) != nil
	}
	switch {
	case isExtism:
		return fmt.Errorf("%w: it exports no %s", ErrExtism, abi.Marker)
	case m.export("_start") != nil:
		return fmt.Errorf(
			"the module is a command (it exports _start), not a plugin: build it as a library that exports %s "+
				"(Go: import the pdk package and build with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared)",
			abi.Marker)
	}
	return fmt.Errorf("the module exports no %s: build it with a hako PDK, or see docs/abi.md for what a guest exports",
		abi.Marker)
}

func (m *Module) export(name string) *Export {
	for i := range m.Exports {
		if m.Exports[i].Name == name {
			return &m.Exports[i]
		}
	}
	return nil
}

// checkExports checks the exports that ABI 1 requires.
func (m *Module) checkExports(version int) error {
	none := FuncType{}
	errs := []error{
		m.checkFunc(abi.MarkerPrefix+strconv.Itoa(version), none),
		m.checkFunc(abi.Entry, FuncType{Params: []ValueType{I32}, Results: []ValueType{I32}}),
	}
	if m.export("_initialize") != nil {
		errs = append(errs, m.checkFunc("_initialize", none))
	}
	if e := m.export("memory"); e == nil || e.Kind != KindMemory {
		errs = append(errs, errors.New(`the module must export its memory as "memory"`))
	}
	return errors.Join(errs...)
}

func (m *Module) checkFunc(name string, want FuncType) error {
	e := m.export(name)
	switch {
	case e == nil || e.Kind != KindFunc:
		return fmt.Errorf("the module must export the function %s %s", name, want)
	case e.Type.String() != want.String():
		return fmt.Errorf("the module exports the function %s %s; ABI %s wants %s", name, e.Type, numbers(hostABIs),
			want)
	}
	return nil
}
