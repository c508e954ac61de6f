//go:build !linux

package doctor

func freeSpace(string) (free uint64, known bool) { return 0, false }

func totalMemory() (total uint64, known bool) { return 0, false }

func processLimit() string { return "" }
