package sandbox

import "testing"

// TestMeter checks that a budget is exact to the step, also when an instruction costs more fuel than is left.
func TestMeter(t *testing.T) {
	t.Parallel()
	m := newMeter(5)
	if fuel := m.reset(); fuel != quantum {
		t.Errorf("begins with %d", fuel)
	}
	const debt = 5*million - quantum - 7
	if fuel := m.refill(-debt); fuel != 7 {
		t.Errorf("%d left, want 7", fuel)
	}
	if fuel := m.refill(-1); fuel != -1 {
		t.Errorf("%d left when all is used and one step more", fuel)
	}
	if fuel := m.refill(-1); fuel > 0 {
		t.Errorf("%d steps given when there are none", fuel)
	}
}
