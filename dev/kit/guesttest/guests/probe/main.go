// Command probe is a guest whose tools do what tests need, good and bad.
package main

func main() {}
