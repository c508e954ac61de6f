package quota_test

import (
	"database/sql"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hako-run/hako/dev/kit/postgrestest"
	"github.com/hako-run/hako/host/govern/quota"
	"github.com/hako-run/hako/host/store/drivers"
)

// TestHostileStore checks that manipulated counters neither give a replica more than the quota nor block it for longer
// than the quota would after a burst.
func TestHostileStore(t *testing.T) {
	t.Parallel()
	rule := &quota.Rule{Name: "calls", Per: quota.Tenant, Rate: 60, Burst: 20, Concurrent: 8}
	begin := func(t *testing.T, statement string) *quota.Store {
		t.Helper()
		s, err := drivers.Open(t.Context(), postgrestest.Start(t), &drivers.Options{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		b, err := quota.NewStore(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Update(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), statement)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, values := range map[string]string{
		"no number":                          "'NaN', 0",
		"infinity":                           "'Infinity', 0",
		"minus infinity":                     "'-Infinity', 0",
		"more than the bucket holds":         "1e300, 0",
		"far less than none":                 "-1e300, 0",
		"full in the far future":             "20, 9223372036854775807",
		"empty in the far future":            "0, 9223372036854775807",
		"empty before the beginning of time": "0, -9223372036854775808",
		"no number in the far future":        "'NaN', 9223372036854775807",
		"just below one":                     "0.9999999999999999, 9223372036854775807",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t, "INSERT INTO quota_bucket VALUES ('key', "+values+")")
			sum := 0
			for range 50 {
				n, wait, err := b.Tokens(t.Context(), "key", rule, 5)
				if err != nil || n < 0 || n > 5 || wait < 0 || wait > time.Second {
					t.Fatalf("%d calls, then a wait of %v, %v", n, wait, err)
				}
				if sum += n; n == 0 {
					break
				}
			}
			if sum > rule.Burst+2 {
				t.Errorf("%d calls of %d", sum, rule.Burst)
			}
		})
	}
	for name, statement := range map[string]string{
		"fewer than none at another replica": "INSERT INTO quota_slot VALUES ('key', 'other', -1000000, " +
			"9223372036854775807)",
		"sums beyond a number": "INSERT INTO quota_slot SELECT 'key', 'other' || n, -9223372036854775808, " +
			"9223372036854775807 FROM generate_series(1, 3) n",
		"10,000 replicas that have none": "INSERT INTO quota_slot SELECT 'key', 'other' || n, 0, 9223372036854775807 " +
			"FROM generate_series(1, 10000) n",
		"another key's": "INSERT INTO quota_slot VALUES ('key''', 'other', 8, 9223372036854775807)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t, statement)
			if n, err := b.Slots(t.Context(), "key", rule, math.MaxInt32); err == nil &&
				(n < 0 || n > rule.Concurrent) {
				t.Errorf("%d calls at once of %d", n, rule.Concurrent)
			}
		})
	}
	for name, key := range map[string]string{
		"a key that is SQL": "'); DROP TABLE quota_bucket; --", "a key of 2,000 bytes": strings.Repeat("x", 2000),
		"a key with quotes": `"'` + "`",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t, "SELECT 1")
			if n, _, err := b.Tokens(t.Context(), key, rule, 5); n != 5 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			if n, _, err := b.Tokens(t.Context(), "other", rule, 20); n != 20 || err != nil {
				t.Errorf("%d for another key, %v", n, err)
			}
		})
	}
}
