package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, events string
		code         int
		want         []string
	}{
		{"cases of two packages", `
{"Action":"run","Package":"m/hako/a","Test":"TestHostileSQLFiles"}
{"Action":"run","Package":"m/hako/a","Test":"TestHostileSQLFiles/attach"}
{"Action":"output","Package":"m/hako/a","Test":"TestHostileSQLFiles/attach","Output":"=== RUN"}
{"Action":"pass","Package":"m/hako/a","Test":"TestHostileSQLFiles/attach"}
{"Action":"pass","Package":"m/hako/a","Test":"TestHostileSQLFiles"}
{"Action":"run","Package":"m/hako/b","Test":"TestHostileAlone"}
{"Action":"skip","Package":"m/hako/b","Test":"TestHostileAlone"}
{"Action":"run","Package":"m/hako/b","Test":"TestOther"}
{"Action":"fail","Package":"m/hako/b","Test":"TestOther"}`, 0,
			[]string{"sql files  a        1      1     0         0", "alone      b        1      0     0         1",
				"all                 2      1     0         1"}},
		{"a case that fails", `
{"Action":"run","Package":"a","Test":"TestHostileX"}
{"Action":"run","Package":"a","Test":"TestHostileX/one"}
{"Action":"run","Package":"a","Test":"TestHostileX/two"}
{"Action":"fail","Package":"a","Test":"TestHostileX/one"}
{"Action":"pass","Package":"a","Test":"TestHostileX/two"}
{"Action":"fail","Package":"a","Test":"TestHostileX"}`, 1, []string{"x      a        2      1     1", "not held: a TestHostileX/one"}},
		{"a parent that fails by itself", `
{"Action":"run","Package":"a","Test":"TestHostileX"}
{"Action":"run","Package":"a","Test":"TestHostileX/one"}
{"Action":"pass","Package":"a","Test":"TestHostileX/one"}
{"Action":"fail","Package":"a","Test":"TestHostileX"}`, 1, []string{"not held: a TestHostileX"}},
		{"a process that died", `{"Action":"run","Package":"a","Test":"TestHostileX"}`, 1,
			[]string{"not held: a TestHostileX"}},
		{"nothing ran", `{"Action":"pass","Package":"a","Test":"TestY"}`, 1, nil},
		{"not events", `ok a 0.1s`, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var out, errs strings.Builder
			if code := run(strings.NewReader(test.events), &out, &errs); code != test.code {
				t.Errorf("exit code %d, want %d: %s", code, test.code, errs.String())
			}
			for _, want := range test.want {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is not in\n%s", want, out.String())
				}
			}
		})
	}
}
