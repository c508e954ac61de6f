package sandbox

import "testing"

// TestMeter checks that a budget is exact to the step, also when an instruction costs more fuel than is left.
func TestMeter(t *testing.T) {
	t.Parallel()
	m := newMeter(5)
	if fuel := m.nextFuel(); fuel != quantum {
		t.Errorf("begins with %d", fuel)
	}
	if !m.charge(5*million-7) || m.nextFuel() != 7 {
		t.Errorf("%d left, want 7", m.nextFuel())
	}
	if m.charge(8) || m.nextFuel() != -1 {
		t.Errorf("%d left when all is used and one step more", m.nextFuel())
	}
}
