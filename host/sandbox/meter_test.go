package sandbox

import "testing"

// TestMeter holds that a budget is kept to the step, also when an instruction took more fuel than there was.
func TestMeter(t *testing.T) {
	t.Parallel()
	m := newMeter(5)
	if fuel := m.begin(); fuel != quantum {
		t.Errorf("begins with %d", fuel)
	}
	const debt = 5*million - quantum - 7
	if fuel := m.next(-debt); fuel != 7 {
		t.Errorf("%d left, want 7", fuel)
	}
	if fuel := m.next(-1); fuel != -1 {
		t.Errorf("%d left when all is used and one step more", fuel)
	}
	if fuel := m.next(-1); fuel > 0 {
		t.Errorf("%d steps given when there are none", fuel)
	}
}
