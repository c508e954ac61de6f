package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/internal/rewrite"
	"github.com/hako-run/hako/host/limit"
)

// quantum is how many steps a guest runs before the host checks its deadline: 10 to 40 us in most guests, some 20 ms in
// one whose every access misses the cache. It also bounds how long a guest delays a garbage collection of the process.
const quantum = 1 << 12

// million is the unit of the CPU limit, in steps.
const million = 1_000_000

// meter counts the steps of one call.
type meter struct {
	budget int64
	// granted counts the steps handed to the guest. The remainder of them is its fuel, which becomes negative when an
	// instruction costs more than is left.
	granted int64
	// charged counts the steps that host functions cost.
	charged int64
	// used is the number of steps of the whole call, set by finish.
	used int64
}

// finish records the steps used, given the remaining fuel.
func (m *meter) finish(left int64) { m.used = m.granted - left + m.charged }

// newMeter returns the meter of an instance that starts, with the fuel that the rewriter gave it.
func newMeter(limit int) meter {
	return meter{budget: int64(limit) * million, granted: quantum}
}

// reset forgets the steps of the start and returns the first fuel.
func (m *meter) reset() int64 {
	m.granted, m.charged = 0, 0
	return m.refill(0)
}

// charge counts steps of host functions. It reports false if the budget is used up; the guest's remaining fuel counts
// as unused.
func (m *meter) charge(steps int64) bool {
	m.charged += steps
	return m.granted-quantum+m.charged < m.budget
}

// refill returns the next fuel, given the remaining fuel. It is not positive when the budget is used up.
func (m *meter) refill(left int64) int64 {
	used := m.granted - left
	fuel := min(quantum, m.budget-used-m.charged)
	m.granted = used + fuel
	return fuel
}

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
	fuel := c.instance.fuel
	if fuel == nil { // during start
		fuel = module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal)
	}
	next := c.meter.refill(int64(fuel.Get()))
	if next <= 0 {
		panic(c.cpuLimitError())
	}
	if err := c.turn.yield(ctx); err != nil {
		panic(err)
	}
	fuel.Set(uint64(next))
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
