package main

// memoryPages is the size of the linear memory, in pages of 64 KiB.
func memoryPages() int32
