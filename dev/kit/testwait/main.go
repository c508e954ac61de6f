package testwait

import (
	"flag"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// atOnce is the number of parallel tests of Main.
const atOnce = 8

// Main is the TestMain of a package whose tests wait for databases, processes or timeouts more than they compute: it runs
// eight parallel tests at once, not one for each processor, unless the flag -parallel is set.
func Main(m *testing.M) {
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		if err := flag.Set("test.parallel", strconv.Itoa(max(atOnce, runtime.GOMAXPROCS(0)))); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
