package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/limit"
	"github.com/hako-run/hako/host/wasm/rewrite"
)

// quantum is the number of steps between two checks of the deadline: 10 to 40 us in most guests, some 20 ms in
// one whose every access misses the cache. It also bounds how long a guest delays a garbage collection of the process.
const quantum = 1 << 12

// million is the unit of the CPU limit, in steps.
const million = 1_000_000

// meter counts the steps of one call.
type meter struct {
	budget int64
	// used counts the steps of host functions, and those of the guest. Each module's since its fuel was granted last
	// are counted when the fuel is used up, and when the call ends.
	used int64
}

func newMeter(limit int) meter { return meter{budget: int64(limit) * million} }

// charge counts steps. It reports false if the budget is used up.
func (m *meter) charge(steps int64) bool {
	m.used += steps
	return m.used < m.budget
}

// nextFuel returns the fuel of a module that has used up its own. It is not positive when the budget is used up.
func (m *meter) nextFuel() int64 { return min(quantum, m.budget-m.used) }

// linkMeter links the function that a rewritten guest calls when its fuel is used up.
func linkMeter(ctx context.Context, runtime wazero.Runtime) error {
	_, err := runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	return err
}

// refuel grants the guest another quantum, unless its deadline has passed or its budget is used up.
func refuel(ctx context.Context, module api.Module, _ []uint64) {
	if err := ctx.Err(); err != nil {
		panic(err)
	}
	c := callOf(ctx)
	core := c.instance.core(module)
	if !c.meter.charge(core.settle()) {
		panic(c.cpuLimitError())
	}
	if err := c.turn.yield(ctx); err != nil {
		panic(err)
	}
	core.grant(c.meter.nextFuel())
}

func (c *call) cpuLimitError() *limit.Error {
	return c.limitError(limit.CPU, fmt.Sprintf("%d million steps", c.limits.CPU),
		"ask for less at once, or raise limits.cpu")
}

// spend implements broker.Call.Spend. It also returns the error of a call that has ended.
func (c *call) spend(steps int64) error {
	if !c.meter.charge(steps) {
		return c.cpuLimitError()
	}
	return c.ctx.Err()
}
