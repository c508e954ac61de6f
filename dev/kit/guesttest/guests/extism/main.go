// Command extism is a guest with the Extism ABI for tests. It has the exports of both families. Hosts treat a plugin
// that exports describe and call as one of the first family, so tests rename describe to get the second.
package main

func main() {}
