// Command pause does nothing until it is told to end. Every pod has one: it holds the namespaces that the pod's containers share.
// The cluster itself has one too, as process 1 of the cluster's namespaces. It reaps orphaned processes.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for got := range told {
		if got != syscall.SIGCHLD {
			return
		}
		for {
			if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != syscall.EINTR && pid <= 0 {
				break
			}
		}
	}
}
