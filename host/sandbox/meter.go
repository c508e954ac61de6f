package sandbox

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/hako-run/hako/host/internal/rewrite"
)

// quantum is how many steps a guest runs before the host looks at its deadline. Most guests take 10 to 40 us for it, one that waits for
// memory all the time some 20 ms. It is also the longest that a guest holds up a garbage collection of the process.
const quantum = 1 << 12

// million is the unit of the CPU limit, in steps.
const million = 1_000_000

// meter counts the steps of one call.
type meter struct {
	budget int64
	// granted are the steps that the guest has got so far. What is left of them is its fuel, which is negative when an instruction
	// cost more than there was.
	granted int64
	// charged are the steps that the host took for the guest.
	charged int64
	// used is how many steps there were, once the call has ended.
	used int64
}

// end notes what was used, given what is left of the last fuel.
func (m *meter) end(left int64) { m.used = m.granted - left + m.charged }

// newMeter is that of an instance that starts, with the fuel from the rewriter.
func newMeter(limit int) meter {
	return meter{budget: int64(limit) * million, granted: quantum}
}

// begin forgets the start, and returns the first fuel.
func (m *meter) begin() int64 {
	m.granted, m.charged = 0, 0
	return m.next(0)
}

// charge takes steps for work of the host's. It reports false if the budget is used up; what the guest has left of its fuel counts as
// unused.
func (m *meter) charge(steps int64) bool {
	m.charged += steps
	return m.granted-quantum+m.charged < m.budget
}

// next returns the fuel to go on with, given what is left of the last. It is zero or less when the budget is used up.
func (m *meter) next(left int64) int64 {
	used := m.granted - left
	fuel := min(quantum, m.budget-used-m.charged)
	m.granted = used + fuel
	return fuel
}

// linkMeter makes the function linkable that a rewritten guest calls when its fuel is used up.
func linkMeter(ctx context.Context, runtime wazero.Runtime) error {
	_, err := runtime.NewHostModuleBuilder(rewrite.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(refuel), nil, nil).Export(rewrite.ImportName).Instantiate(ctx)
	return err
}

// refuel lets the guest go on for another quantum, unless its time is up or its budget used.
func refuel(ctx context.Context, module api.Module, _ []uint64) {
	if err := ctx.Err(); err != nil {
		panic(err)
	}
	c := callOf(ctx)
	fuel := c.instance.fuel
	if fuel == nil { // while the module starts
		fuel = module.ExportedGlobal(rewrite.FuelExport).(api.MutableGlobal)
	}
	next := c.meter.next(int64(fuel.Get()))
	if next <= 0 {
		panic(c.usedUp())
	}
	if err := c.turn.yield(ctx); err != nil {
		panic(err)
	}
	fuel.Set(uint64(next))
}

func (c *call) usedUp() *LimitError {
	return c.limitError(LimitCPU, fmt.Sprintf("%d million steps", c.limits.CPU), "ask for less at once, or raise limits.cpu")
}

// spend is broker.Call.Spend. It also says that the call's time is up.
func (c *call) spend(steps int64) error {
	if !c.meter.charge(steps) {
		return c.usedUp()
	}
	return c.ctx.Err()
}
