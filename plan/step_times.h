// StepTimes: the time of one rank in a step, by cause; and sums of them.
#pragma once

#include "plan/wait_times.h"

namespace motley {

struct StepTimes {
  double compute_s = 0;    // all time except waiting; includes the other three
  double codec_s = 0;      // transfers between chunks: encoding, decoding, passing
  double optimizer_s = 0;  // updating the parameters
  WaitTimes wait_s;        // for messages, without work to compute
  double data_s = 0;       // reading and converting samples
};

}  // namespace motley
