package glob

import (
	"strings"
	"testing"
	"time"
)

// TestHostilePatterns: patterns that would be slow to match are not Valid.
func TestHostilePatterns(t *testing.T) {
	t.Parallel()
	deep, long := strings.Repeat("a/", 2000)+"a", strings.Repeat("a", 4000)
	for pattern, path := range map[string]string{
		strings.Repeat("{a,a}", 100) + "b":                      long,
		strings.Repeat("{a,aa}", 100) + "b":                     long,
		strings.Repeat("{*,*}", 100) + "b":                      long,
		strings.Repeat("{**/a,**/b}/", 40) + "c":                deep,
		"**/" + strings.Repeat("{a,b}/**/", 50) + "c":           deep,
		strings.Repeat("{", 50) + strings.Repeat("a,a}", 50):    long,
		strings.Repeat("{a,{a,", 20) + strings.Repeat("}}", 20): long,
		strings.Repeat("{*a,*a,*a,*a,*a,*a,*a,*a}", 4) + "b":    long,
		strings.Repeat("{**/a/,**/a/,**/a/}", 4) + "b":          deep,
		strings.Repeat("**/a/", 500) + "b":                      deep,
		strings.Repeat("**/*a*/", 100) + "b":                    deep,
		strings.Repeat("*a", 200) + "b":                         long,
		strings.Repeat("?*", 200) + "b":                         long,
		strings.Repeat("[a-z]*", 100) + "b":                     long,
		"{a" + strings.Repeat(",a", 400) + "}b":                 long,
	} {
		t.Run(pattern[:min(len(pattern), 20)], func(t *testing.T) {
			t.Parallel()
			if !Valid(pattern) {
				return
			}
			start := time.Now()
			if Match(pattern, path) {
				t.Error("it matches")
			}
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("it takes %v", took)
			}
		})
	}
	for _, pattern := range []string{"**/.git/**", "**/*.{key,pem,crt}", "{a,b}/{c,d}/*.{go,mod}", "data/**"} {
		if !Valid(pattern) {
			t.Errorf("%s is not valid", pattern)
		}
	}
}
