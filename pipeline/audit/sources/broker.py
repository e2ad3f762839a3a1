"""What the group coordinator on the broker logs: Scala's of 2.4 to 3.9 and the Java one, of 3.7 on.

Of groups of the consumer protocol (KIP-848) only who is removed: no rebalance of theirs begins or ends.
"""

from __future__ import annotations

from rebalance.pipeline.audit.sources.events import Kind
from rebalance.pipeline.audit.sources.patterns import LOGGER, Line, Source

_OFFSETS = r"(?: \(__consumer_offsets-\d+\))?"
_MEMBER = (
    r"(?:MemberMetadata\(memberId=(?P<member>[^,]*), groupInstanceId=(?:None|Some\((?P<instance>[^)]*)\)).*\)"
    r"|(?P<member2>[^\s(]+))"
)
_REASON = r"(?:; client reason: (?P<detail>.*))?"
_EXPLICIT = r"has left group (?P<group>.*) through explicit `LeaveGroup`(?: request)?" + _REASON
_INSTANCE = r"(?: with instance id (?P<instance>.*?))?"

BROKER = Source(
    name="broker",
    marks=("[GroupCoordinator ", "[GroupMetadataManager "),
    prefix=(
        r"^(?s:(?P<head>.*?)\[Group(?:Coordinator|MetadataManager) [^\]]*\]:? (?P<message>.*?))"
        + LOGGER
        + "$"
    ),
    lines=(
        Line(
            "Preparing to rebalance group ",
            r"(?P<group>.*) in state \w+ with old generation (?P<generation>\d+)"
            rf"{_OFFSETS} \(reason: (?P<detail>.*)\)\.?",
            Kind.PREPARING,
            "2.4 -",
        ),
        Line(
            "Stabilized group ",
            rf"(?P<group>.*) generation (?P<generation>\d+){_OFFSETS}(?: with \d+ members)?\.?",
            Kind.STABLE,
            "2.4 -",
        ),
        Line(
            "Group ",
            rf"(?P<group>.*) with generation (?P<generation>\d+) is now empty{_OFFSETS}\.?",
            Kind.EMPTY,
            "2.4 -",
        ),
        Line(
            "Group ",
            r"(?P<group>.*) removed (?:dynamic members who haven't joined"
            r"|members who haven't sent their sync requests?): "
            r"(?:\w*(?:Set|Buffer|List)\(|\[)(?P<members>.*)[)\]]",
            Kind.REMOVED,
            "2.8 -",
        ),
        Line("Group ", ".*", None),
        Line(
            "Member ",
            r"(?P<member>\S+) in group (?P<group>.*) has (?P<detail>failed), removing it from the group\.?",
            Kind.REMOVED,
            "2.4 -",
        ),
        Line("Member ", f"{_MEMBER} {_EXPLICIT}", Kind.REMOVED, "3.0 - 3.9"),
        Line("Member ", ".*", None),
        Line(
            "Member[",
            r"group.instance.id (?:None|Some\((?P<instance>.*)\)), member.id (?P<member>.*)\] "
            r"in group (?P<group>.*) has (?P<detail>left), removing it from the group",
            Kind.REMOVED,
            "2.4 - 2.8",
        ),
        Line("Member[", ".*", None),
        Line(
            "[Group ",
            rf"(?P<group>.*)\] (?:Dynamic |Static )?Member (?P<member>\S+){_INSTANCE} "
            rf"has left group through explicit `LeaveGroup` request{_REASON}",
            Kind.REMOVED,
            "3.7 -",
        ),
        Line("[Group ", ".*", None),
        Line(
            "[GroupId ",
            rf"(?P<group>.*)\] (?:Dynamic |Static )?[Mm]ember (?P<member>\S+){_INSTANCE} "
            rf"has left group through explicit `LeaveGroup` request{_REASON}",
            Kind.REMOVED,
            "4.0 -",
        ),
        Line(
            "[GroupId ",
            rf"(?P<group>.*)\] (?:Static )?[Mm]ember (?P<member>\S+){_INSTANCE} "
            r"(?:fenced from the group because (?P<detail>.*)\.|(?P<detail2>left) the consumer group\.)",
            Kind.REMOVED,
            "3.7 - (consumer protocol)",
        ),
        Line("[GroupId ", ".*", None),
        Line(
            "Static member with groupInstanceId=",
            r"(?P<instance>.*) and unknown member id joins (?:group )?(?P<group>.*) in \w+ state\. "
            r"(?P<detail>Replacing) previously mapped (?:member )?(?P<member>\S+) with this "
            r"groupInstanceId\.",
            Kind.REMOVED,
            "3.0 -",
        ),
        Line("Static member with groupInstanceId=", ".*", None),
    ),
)
