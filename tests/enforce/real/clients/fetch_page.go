// Fetches the URL given as argument with net/http and writes its body, as many times as the second
// argument says, each time over a connection of its own; the hash of all bodies ends the output.
package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

func fetch(url string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(url)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

func main() {
	times, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	links, err := net.Interfaces()
	if err != nil {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(2)
	}
	fmt.Println("links", len(links))
	var all sync.WaitGroup
	bodies := make([][]byte, times)
	failed := make([]error, times)
	for each := 0; each < times; each++ {
		all.Add(1)
		go func(each int) {
			defer all.Done()
			bodies[each], failed[each] = fetch(os.Args[1])
		}(each)
	}
	all.Wait()
	for each := range bodies {
		if failed[each] != nil {
			fmt.Fprintln(os.Stderr, failed[each])
			os.Exit(1)
		}
		fmt.Printf("%x\n", sha256.Sum256(bodies[each]))
	}
}
