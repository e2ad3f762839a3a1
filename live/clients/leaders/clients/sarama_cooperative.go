package main

import "github.com/IBM/sarama"

// What older releases have not.
var newer = map[string]func() sarama.BalanceStrategy{
	"cooperative-sticky": sarama.NewBalanceStrategyCooperativeSticky,
}
