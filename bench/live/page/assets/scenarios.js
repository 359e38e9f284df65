// What each scenario is about, for the form and for the slides, in English and
// Chinese: what it is, what to do to it, what to look at, and the point.
import { chinese } from "parts";

const scenarios = {
  "normal": {
    title: ["Normal", "正常"],
    what: ["Orders go through the queue to the database, and nobody disturbs them.", "订单经队列写入数据库，没有任何干扰。"],
    fault: ["Nothing is broken here: watch one message from the buyer to its row.", "这里不制造故障：看一条消息从买家走到数据库的一行。"],
    see: ["Each message waits in the queue, is held by one consumer, becomes a row, and is acknowledged.", "每条消息先在队列里等待，被一个消费者持有，写成一行，然后确认。"],
    point: ["A queue moves work out of the request: the buyer has an answer before the row exists.", "队列把工作移出请求：买家先得到答复，行还不存在。"],
  },
  "lag": {
    title: ["Lag", "积压"],
    what: ["Buyers are faster than consumers: what waits grows.", "买家快于消费者：等待的消息越来越多。"],
    fault: ["Start another consumer, and see whether the backlog shrinks.", "再启动一个消费者，看积压是否缩短。"],
    see: ["The number in the queue grows by what comes in minus what goes out, until there are enough consumers.", "队列长度按“进入减去取走”增长，直到消费者足够。"],
    point: ["A backlog is time that the last buyer waits: length divided by the rate at which it is worked off.", "积压就是最后一位买家的等待时间：长度除以处理速率。"],
  },
  "back-pressure": {
    title: ["Back-pressure", "背压"],
    what: ["The queue has room for so many and no more: who publishes has to wait, or is refused.", "队列容量有限：发布者要么等待，要么被拒绝。"],
    fault: ["Slow the consumer down until the queue is full.", "放慢消费者，直到队列装满。"],
    see: ["The buyers' messages stop in front of the queue: not yet accepted, or rejected.", "买家的消息停在队列门口：尚未接受，或被拒绝。"],
    point: ["Full must mean something: wait, refuse, or drop. A queue that never says so breaks later, and elsewhere.", "“满”必须有含义：等待、拒绝或丢弃。从不说满的队列，会更晚、在别处崩溃。"],
  },
  "rebalance": {
    title: ["Rebalance", "再均衡"],
    what: ["Consumers come and go, and the work is divided anew.", "消费者来来去去，工作重新分配。"],
    fault: ["Kill a consumer, then start another.", "杀死一个消费者，再启动一个。"],
    see: ["What the dead consumer owned goes to the others: partitions, pending messages, or nothing at all.", "死者拥有的东西归了别人：分区、待确认的消息，或者什么也没有。"],
    point: ["Until the broker is sure that a consumer is gone, its share stands still; what it held comes again.", "在 Broker 确信消费者已走之前，它那一份停着不动；它手上的会再来一次。"],
  },
  "order-by-key": {
    title: ["Order by key", "按键有序"],
    what: ["Three buyers: each one's messages must be handled in the order in which they were sent.", "三位买家：每位的消息必须按发送顺序处理。"],
    fault: ["Kill a consumer while messages of one key are under way.", "在同一个键的消息处理途中杀死一个消费者。"],
    see: ["The count “reordered” says how many came after a later one of their key.", "“乱序”一栏是多少条消息晚于同键的后一条。"],
    point: ["Competing consumers give up order; partitions by key keep it, within a key and no further.", "竞争消费放弃顺序；按键分区保住顺序，只在同一个键之内。"],
  },
  "poison": {
    title: ["Poison and dead letters", "毒消息与死信"],
    what: ["One message in twelve can never be handled. Somebody has to give it up.", "每十二条就有一条永远处理不了，必须有人放弃它。"],
    fault: ["No button is needed: the poison is among the messages.", "不需要按钮：毒消息就在其中。"],
    see: ["It is delivered again and again, with a ring, until its attempts are used up and it is a dead letter.", "它带着圆环一次次重来，直到尝试用完，成为死信。"],
    point: ["Without a bound on attempts one bad message blocks or burns a consumer for ever; with one, a person can look at it.", "不限次数，一条坏消息会永远堵住或耗尽消费者；有了上限，人就能来看它。"],
  },
  "at-most-once": {
    title: ["At most once", "至多一次"],
    what: ["The queue forgets a message as it hands it over.", "队列在交出消息的同时就忘了它。"],
    fault: ["Kill the consumer while it holds messages.", "在消费者持有消息时杀死它。"],
    see: ["What it held turns red: nobody has it any more, and nobody will send it again.", "它手上的变红：谁都没有了，谁也不会再发。"],
    point: ["At most once is for what may be lost. An order may not.", "至多一次只适合可以丢的东西，订单不行。"],
  },
  "at-least-once": {
    title: ["At least once", "至少一次"],
    what: ["The queue keeps a message until it is acknowledged.", "队列保留消息，直到得到确认。"],
    fault: ["Kill the consumer while it holds messages.", "在消费者持有消息时杀死它。"],
    see: ["Nothing is lost; what it held comes again, and where the effect was there already it is made twice.", "什么都没丢；它手上的会再来，若效果已经写入，就写了两次。"],
    point: ["No loss is paid for with repeats. The handler decides whether a repeat hurts.", "不丢的代价是重复。重复有没有害，取决于处理者。"],
  },
  "idempotent": {
    title: ["At least once, idempotent", "至少一次且幂等"],
    what: ["As before, and the database knows which messages it has had.", "同上，而且数据库知道哪些消息已处理过。"],
    fault: ["Kill the consumer while it holds messages.", "在消费者持有消息时杀死它。"],
    see: ["Messages come twice, their rows do not.", "消息来了两次，行只有一份。"],
    point: ["Delivered at least once, with one effect: a unique key in the same transaction as the effect.", "至少一次投递，效果只有一次：唯一键与效果在同一事务里。"],
  },
  "dual-write": {
    title: ["Dual write", "双写"],
    what: ["The buyer's service writes its database and then the queue: two writes, no transaction over both.", "买家的服务先写数据库再写队列：两次写，没有共同的事务。"],
    fault: ["Kill the buyers' process, or the broker, between the two.", "在两次写之间杀死买家进程或 Broker。"],
    see: ["Rows without a message, or messages that nobody knows about: the counts of the two sides differ.", "有行没消息，或者没人知道的消息：两边的数目对不上。"],
    point: ["No order of two writes is safe. One write must be the truth.", "两次写没有哪个次序是安全的。必须只有一次写是真相。"],
  },
  "outbox": {
    title: ["Outbox and inbox", "发件箱与收件箱"],
    what: ["The message is a row of the same transaction; a relay publishes it until the queue has it.", "消息与业务同一事务写成一行；中继反复发布直到队列收下。"],
    fault: ["Kill the buyers' process, or the broker, and start it again.", "杀死买家进程或 Broker，再启动它。"],
    see: ["Nothing is missing afterwards: what was not sent is sent later, perhaps twice, and taken once.", "之后什么都不缺：没发的稍后再发，也许两次，只收一次。"],
    point: ["Outbox at the sender, inbox at the receiver: repeats on the way, one effect at both ends.", "发送方有发件箱，接收方有收件箱：路上可以重复，两端效果各一次。"],
  },
  "spike": {
    title: ["Flash-sale spike", "秒杀洪峰"],
    what: ["Silence, then everybody within one second: far more than the consumers can do.", "先是安静，然后所有人在一秒内涌来：远超消费者的能力。"],
    fault: ["Kill a consumer in the middle of the spike.", "在洪峰中杀死一个消费者。"],
    see: ["The queue takes the spike and works it off. Compare who lost, who repeated, and who was done first.", "队列接住洪峰再慢慢处理。比较谁丢了、谁重复了、谁先做完。"],
    point: ["The queue turns a spike into a wait. How long, and what a crash costs meanwhile, is the choice of a queue.", "队列把洪峰变成等待。等多久、期间一次崩溃的代价，就是选型。"],
  },
};

// scenarioWords are those of a scenario of the server's; one that the page does
// not know is told in the server's words.
export function scenarioWords(s) {
  const own = scenarios[s.name], at = chinese() ? 1 : 0;
  if (!own) return { title: s.title ?? s.name, what: s.summary ?? "", fault: "", see: "", point: s.point ?? "" };
  return { title: own.title[at], what: own.what[at], fault: own.fault[at], see: own.see[at], point: own.point[at] };
}
